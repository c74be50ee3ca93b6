package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// mark is a point in time.
type mark struct {
	at      time.Time
	usage   syscall.Rusage
	mallocs uint64
}

// measured has the resources used since a mark. Memory is the peak of the whole process.
type measured struct {
	wallSeconds, cpuSeconds float64
	peakRSSBytes            int64
	// rssBytes is the resident memory at the end, or at rest in jobs that measure that.
	rssBytes int64
	// heapBytes is the size of live heap objects at that time.
	heapBytes uint64
	// allocations is the number of allocations.
	allocations uint64
	// p50 and p99 are the median and the 99th percentile of latencies, in microseconds.
	p50, p99 float64
	// writes is the number of concurrent writes, for jobs that write.
	writes int64
}

func now() mark {
	m := mark{at: time.Now()}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	m.mallocs = memory.Mallocs
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &m.usage)
	return m
}

// ofProcess returns a mark at the start of this process, given as nanoseconds of Unix time.
func ofProcess(started int64) mark {
	return mark{at: time.Unix(0, started)}
}

func (m mark) measured() measured {
	end := mark{at: time.Now()}
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &end.usage)
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return measured{
		wallSeconds:  end.at.Sub(m.at).Seconds(),
		cpuSeconds:   cpuSeconds(&end.usage) - cpuSeconds(&m.usage),
		peakRSSBytes: end.usage.Maxrss * 1024,
		rssBytes:     resident(),
		allocations:  memory.Mallocs - m.mallocs,
	}
}

// rest measures memory again after a moment, when background work has ended.
func (m *measured) rest() {
	time.Sleep(time.Second)
	m.rssBytes, m.peakRSSBytes = resident(), memory("VmHWM:")
	m.heapBytes = inUse()
}

// inUse returns the size of live heap objects.
func inUse() uint64 {
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return memory.HeapAlloc
}

// cpuSeconds returns the CPU time of all threads, including system time.
func cpuSeconds(usage *syscall.Rusage) float64 {
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

// answer is the result of a program, short enough to compare: a count, and a sum that does not depend on the order.
type answer struct {
	count, sum uint64
}

func (a *answer) addKey(namespace, name string) {
	a.add(namespace + "/" + name)
}

// addNumber counts an object by a number that is cheap to read, where hashing would cost more than the measured work.
func (a *answer) addNumber(number uint64) {
	a.count++
	a.sum += number
}

// addPod counts a pod by fields from its beginning, its middle and its end.
func (a *answer) addPod(pod *corev1.Pod) {
	images := make([]string, len(pod.Spec.Containers))
	for i := range pod.Spec.Containers {
		images[i] = pod.Spec.Containers[i].Image
	}
	a.add(fmt.Sprintf("%s/%s %s %s", pod.Namespace, pod.Name, strings.Join(images, ","), pod.Status.PodIP))
}

func (a *answer) add(text string) {
	hash := fnv.New64a()
	hash.Write([]byte(text))
	a.count++
	a.sum += hash.Sum64()
}

func report(arguments *arguments, measured measured, answer *answer) error {
	line := map[string]any{
		"library":        library,
		"job":            arguments.job,
		"count":          arguments.count,
		"wall_seconds":   measured.wallSeconds,
		"cpu_seconds":    measured.cpuSeconds,
		"peak_rss_bytes": measured.peakRSSBytes,
		"rss_bytes":      measured.rssBytes,
		"heap_bytes":     measured.heapBytes,
		"allocations":    measured.allocations,
		"answer":         fmt.Sprintf("%d:%016x", answer.count, answer.sum),
	}
	if measured.p99 > 0 {
		line["latency_p50_microseconds"], line["latency_p99_microseconds"] = measured.p50, measured.p99
	}
	if measured.writes > 0 {
		line["writes"] = measured.writes
	}
	return json.NewEncoder(os.Stdout).Encode(line)
}
