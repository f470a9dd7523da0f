package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"sort"
	"strconv"
	"syscall"
	"time"
)

// Measurement is what bench reports. Times are of Solve alone, with a fresh scheduler each; the best one counts as
// Karpenter's.
type Measurement struct {
	Karpenter  string    `json:"karpenter"`
	Name       string    `json:"name"`
	Pods       int       `json:"pods"`
	Nodes      int       `json:"nodes"`
	Existing   int       `json:"existing"`
	Unplaced   int       `json:"unplaced"`
	AllPlaced  bool      `json:"allPlaced"`
	Workers    int       `json:"workers"`
	Processors int       `json:"processors"`
	Millis     []float64 `json:"millis"`
	BestMillis float64   `json:"bestMillis"`
	// CPUMillis is the processor time of all threads meanwhile: on a busy machine the steadier number.
	CPUMillis  []float64 `json:"cpuMillis"`
	PodsPerSec float64   `json:"podsPerSec"`
	// MiB resident when the first Solve began, and at most while one ran (setting up the next one included).
	BaseRssMiB float64 `json:"baseRssMiB"`
	PeakRssMiB float64 `json:"peakRssMiB"`
}

// bench times Solve on one problem.
func bench(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("oracle bench", flag.ContinueOnError)
	file := flags.String("file", "", "the problem")
	iterations := flags.Int("iterations", 1, "how often")
	workers := flags.Int("workers", 5, "workers of the scheduler, as in Karpenter's own benchmark")
	limit := flags.Duration("limit", time.Hour, "an iteration that takes longer is an error")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *iterations < 1 {
		return fmt.Errorf("--iterations: %d is not positive", *iterations)
	}
	data, err := os.ReadFile(*file)
	if err != nil {
		return err
	}
	problem, _, err := parseProblem(data)
	if err != nil {
		return fmt.Errorf("%s: %w", *file, err)
	}
	m := Measurement{Karpenter: karpenterVersion, Name: problem.Name, Workers: *workers, Processors: runtime.GOMAXPROCS(0)}
	problem.withWellKnown(func() {
		for i := range *iterations {
			if err = m.iterate(problem, i, *limit); err != nil {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	sorted := append([]float64(nil), m.Millis...)
	sort.Float64s(sorted)
	m.BestMillis = sorted[0]
	m.PodsPerSec = float64(m.Pods) / m.BestMillis * 1000
	m.PeakRssMiB = residentMiB("VmHWM")
	m.AllPlaced = m.Unplaced == 0
	line, err := marshal(m)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", line)
	return err
}

func (m *Measurement) iterate(problem *Problem, iteration int, limit time.Duration) error {
	w, err := newWorld(problem, m.Workers)
	if err != nil {
		return err
	}
	r, err := w.prepare()
	if err != nil {
		return err
	}
	// What building the problem left behind is not Solve's.
	debug.FreeOSMemory()
	if iteration == 0 {
		// 5 sets the peak back to what is resident now; where the kernel refuses, the peak covers the set-up too.
		_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
		m.BaseRssMiB = residentMiB("VmRSS")
	}
	before := processorTime()
	results, took, err := r.solve(limit)
	if err != nil {
		return err
	}
	m.CPUMillis = append(m.CPUMillis, float64((processorTime()-before).Microseconds())/1000)
	m.Millis = append(m.Millis, float64(took.Microseconds())/1000)
	m.Pods = len(r.pods) + len(r.refused)
	m.Nodes = len(results.NewNodeClaims)
	m.Existing = 0
	for _, node := range results.ExistingNodes {
		m.Existing += len(node.Pods)
	}
	if unplaced := len(results.PodErrors) + len(r.refused); unplaced > m.Unplaced {
		m.Unplaced = unplaced
	}
	return nil
}

// processorTime is what this process has used so far, in user and kernel mode.
func processorTime() time.Duration {
	usage := syscall.Rusage{}
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// residentMiB reads a line of /proc/self/status that is given in kB; 0 where there is none.
func residentMiB(field string) float64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for _, line := range bytes.Split(data, []byte("\n")) {
		fields := bytes.Fields(line)
		if len(fields) >= 2 && string(fields[0]) == field+":" {
			kib, err := strconv.ParseFloat(string(fields[1]), 64)
			if err != nil {
				return 0
			}
			return kib / 1024
		}
	}
	return 0
}
