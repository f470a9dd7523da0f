package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// runs per problem: answers vary with the order of Go's maps.
const runs = 5

type example struct {
	Problem json.RawMessage `json:"problem"`
	Expect  json.RawMessage `json:"expect"`
}

func examples(t *testing.T) map[string]example {
	t.Helper()
	files, err := filepath.Glob("../problems/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no problems: %v", err)
	}
	all := map[string]example{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		one := example{}
		if err := json.Unmarshal(data, &one); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".json")] = one
	}
	return all
}

func (e *example) parse(t *testing.T) (*Problem, *expectation) {
	t.Helper()
	problem, _, err := parseProblem(e.Problem)
	if err != nil {
		t.Fatal(err)
	}
	expect := &expectation{}
	decoder := json.NewDecoder(bytes.NewReader(e.Expect))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(expect); err != nil {
		t.Fatal(err)
	}
	return problem, expect
}

func TestEveryExampleIsAnsweredAsExpected(t *testing.T) {
	for name, one := range examples(t) {
		t.Run(name, func(t *testing.T) {
			problem, expect := one.parse(t)
			if expect.Since > karpenterVersion {
				t.Skipf("%s does not have this", karpenterVersion)
			}
			for range runs {
				answer := problem.answer(5, time.Minute)
				if breaches := expect.breaches(answer); len(breaches) > 0 {
					text, _ := marshal(answer)
					t.Fatalf("%s\nexpected: %s\nanswer: %s", strings.Join(breaches, "\n"), expect.Why, text)
				}
			}
		})
	}
}

// An expectation that no answer can breach says nothing.
func TestNoExpectationHoldsOfAnEmptyAnswer(t *testing.T) {
	for name, one := range examples(t) {
		_, expect := one.parse(t)
		if len(expect.breaches(&Answer{})) == 0 {
			t.Errorf("%s expects nothing", name)
		}
	}
}

func TestServeAnswersEveryLineAndRepeats(t *testing.T) {
	one := examples(t)["zone-spread"]
	var compact bytes.Buffer
	if err := json.Compact(&compact, one.Problem); err != nil {
		t.Fatal(err)
	}
	input := compact.String() + "\n\n{\"name\":\"bad\",\"prods\":[]}\nnonsense\n" + compact.String()
	var out bytes.Buffer
	if err := command([]string{"--repeat", "2"}, strings.NewReader(input), &out); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		got := map[string]any{}
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		_, failed := got["error"]
		if failed != (got["name"] != "zone-spread") {
			t.Errorf("an error where none belongs, or none: %s", line)
		}
		names = append(names, got["name"].(string))
	}
	if want := []string{"zone-spread", "zone-spread", "bad", "bad", "", "", "zone-spread", "zone-spread"}; !slices.Equal(names, want) {
		t.Errorf("answered %v", names)
	}
}

func TestReadingIsStrict(t *testing.T) {
	text := string(examples(t)["zone-spread"].Problem)
	for _, c := range []struct{ from, to, named string }{
		{`"nodePools":`, `"NodePools":`, "NodePools"},
		{`"nodePools":`, `"nodePool":`, "nodePool"},
		{`"price":`, `"prize":`, "prize"},
		{`"maxSkew"`, `"maxskew"`, "maxskew"},
		{`"uid-p-2"`, `"uid-p-1"`, "uid"},
		{`"nodePools":`, `"instanceTypesOf": {"none": []}, "nodePools":`, "none"},
	} {
		changed := strings.Replace(text, c.from, c.to, 1)
		if changed == text {
			t.Fatalf("%s is not there", c.from)
		}
		if _, _, err := parseProblem([]byte(changed)); err == nil || !strings.Contains(err.Error(), c.named) {
			t.Errorf("%s: %v", c.to, err)
		}
	}
}

func TestBadInputIsAnAnswerWithAnError(t *testing.T) {
	text := string(examples(t)["in-flight-claim"].Problem)
	for _, c := range []struct{ from, to, named string }{
		{`"Respect"`, `"Maybe"`, "preferencePolicy"},
		{`"Strict"`, `"Maybe"`, "minValuesPolicy"},
		{`"values": ["on-demand"]`, `"values": ["on-demand", "spot"]`, "capacity-type"},
		{`"providerID"`, `"nodeName"`, "providerID"},
	} {
		changed := strings.Replace(text, c.from, c.to, 1)
		problem, _, err := parseProblem([]byte(changed))
		if err != nil {
			t.Fatal(err)
		}
		if answer := problem.answer(1, time.Minute); !strings.Contains(answer.Error, c.named) {
			t.Errorf("%s: %+v", c.to, answer)
		}
	}
}

// A panic of one problem is its answer, and leaves nothing behind.
func TestPanicsAreAnswers(t *testing.T) {
	one := examples(t)["provider-label"]
	problem, _ := one.parse(t)
	// A NodePool without a class cannot come through an API server.
	problem.NodePools[0].Spec.Template.Spec.NodeClassRef = nil
	if answer := problem.answer(1, time.Minute); !strings.HasPrefix(answer.Error, "panic: ") {
		t.Errorf("%+v", answer)
	}
	if karpv1.WellKnownLabels.Has("example.com/family") {
		t.Error("a label stays well-known")
	}
}

// Nothing of a problem reaches the next one: with or without others before, the answers are as expected.
func TestLabelsOfOneProblemAreUnknownToTheNext(t *testing.T) {
	one := examples(t)["provider-label"]
	first, _ := one.parse(t)
	first.answer(1, time.Minute)
	next, _ := one.parse(t)
	for i := range next.InstanceTypes {
		it := &next.InstanceTypes[i]
		it.Requirements = it.Requirements[:5]
	}
	if answer := next.answer(1, time.Minute); answer.Errors["default/p-1"] == "" {
		t.Errorf("a label that no type defines is known: %+v", answer)
	}
}

func TestExportsAreReadAgainAndWhollyPlaced(t *testing.T) {
	for mix := range mixes {
		t.Run(mix, func(t *testing.T) {
			var first, second, measured bytes.Buffer
			args := []string{"export", "--mix", mix, "--pods", "43", "--nodes", "2", "--running", "5"}
			for _, out := range []*bytes.Buffer{&first, &second} {
				if err := command(args, nil, out); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(first.Bytes(), second.Bytes()) {
				t.Error("the same seed gives two problems")
			}
			file := filepath.Join(t.TempDir(), "problem.json")
			if err := os.WriteFile(file, first.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := command([]string{"bench", "--file", file, "--iterations", "2"}, nil, &measured); err != nil {
				t.Fatal(err)
			}
			m := Measurement{}
			if err := json.Unmarshal(measured.Bytes(), &m); err != nil {
				t.Fatal(err)
			}
			if m.Pods != 43 || !m.AllPlaced || len(m.Millis) != 2 || m.BestMillis <= 0 || m.CPUMillis[0] <= 0 {
				t.Errorf("%+v", m)
			}
		})
	}
}
