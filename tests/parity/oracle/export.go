package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// export writes a problem of one of the mixes.
func export(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("oracle export", flag.ContinueOnError)
	mix := flags.String("mix", "diverse", "one of "+strings.Join(slices.Sorted(maps.Keys(mixes)), ", "))
	pods := flags.Int("pods", 1000, "pending pods")
	seed := flags.Int64("seed", 42, "of the random draws")
	nodes := flags.Int("nodes", 0, "existing nodes")
	running := flags.Int("running", 0, "pods running on them")
	preferences := flags.String("preferences", "Respect", "preferencePolicy")
	if err := flags.Parse(args); err != nil {
		return err
	}
	of, ok := mixes[*mix]
	switch {
	case !ok:
		return fmt.Errorf("--mix: there is no %q", *mix)
	case *pods < 0 || *nodes < 0 || *running < 0:
		return fmt.Errorf("--pods, --nodes and --running must not be negative")
	case *running > 0 && *nodes == 0:
		return fmt.Errorf("--running wants --nodes")
	}
	problem := benchmarkCluster()
	problem.Name = fmt.Sprintf("%s-%d-seed-%d", *mix, *pods, *seed)
	if *nodes > 0 {
		problem.Name += fmt.Sprintf("-on-%d-nodes-with-%d", *nodes, *running)
	}
	problem.Options.PreferencePolicy = *preferences
	draws := newDraws(*seed)
	problem.addNodes(draws, *nodes, *running)
	problem.Pods = append(problem.Pods, of(draws, *pods)...)
	data, err := json.Marshal(problem)
	if err != nil {
		return err
	}
	if data, err = withoutNoise(data); err != nil {
		return err
	}
	_, err = out.Write(append(data, '\n'))
	return err
}

// withoutNoise drops nulls and empty objects, which Go's types write for what is not set.
func withoutNoise(data []byte) ([]byte, error) {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	return marshal(pruned(value))
}

func pruned(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			member = pruned(member)
			if inner, object := member.(map[string]any); member == nil || object && len(inner) == 0 && key != "labelSelector" {
				delete(v, key)
			} else {
				v[key] = member
			}
		}
		return v
	case []any:
		for i := range v {
			v[i] = pruned(v[i])
		}
		return v
	default:
		return value
	}
}
