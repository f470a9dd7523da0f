// Command oracle answers scheduling problems (../FORMAT.md) with the decisions of the real Karpenter, makes its
// scheduling benchmark's problems, and times it on them.
//
//	oracle [--repeat N] [--workers N] [--limit D] [FILE…]   one answer per line; problems from files, or lines of stdin
//	oracle export --mix M --pods N --seed S                 a problem on stdout
//	oracle bench --file F --iterations K                    one line of measurements
//	oracle version                                          the release of Karpenter
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	log.SetLogger(logr.Discard())
	if err := command(os.Args[1:], os.Stdin, os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

func command(args []string, in io.Reader, out io.Writer) error {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		switch args[0] {
		case "export":
			return export(args[1:], out)
		case "bench":
			return bench(args[1:], out)
		case "version":
			_, err := fmt.Fprintln(out, karpenterVersion)
			return err
		}
	}
	return serve(args, in, out)
}

// serve answers every problem of the files, or every line of the input as it comes.
func serve(args []string, in io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("oracle", flag.ContinueOnError)
	repeat := flags.Int("repeat", 1, "answers per problem; they vary with the order of Go's maps")
	workers := flags.Int("workers", 5, "workers of the scheduler")
	limit := flags.Duration("limit", 10*time.Minute, "an answer that takes longer is an error")
	if err := flags.Parse(args); err != nil {
		return err
	}
	respond := func(data []byte) error {
		problem, name, err := parseProblem(data)
		for range *repeat {
			answer := &Answer{Name: name}
			if err != nil {
				answer.Error = err.Error()
			} else {
				answer = problem.answer(*workers, *limit)
			}
			line, err := marshal(answer)
			if err != nil {
				return err
			}
			if _, err := out.Write(append(line, '\n')); err != nil {
				return err
			}
		}
		return nil
	}
	for _, file := range flags.Args() {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := respond(data); err != nil {
			return err
		}
	}
	if flags.NArg() > 0 {
		return nil
	}
	lines := bufio.NewReaderSize(in, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if !isBlank(line) {
			if err := respond(line); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// marshal writes JSON without escaping what only HTML needs escaped.
func marshal(value any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buffer.Bytes(), "\n"), nil
}
