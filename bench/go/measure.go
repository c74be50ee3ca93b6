package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// mark is a point in time.
type mark struct {
	at    time.Time
	usage syscall.Rusage
}

// measured is what was used since a mark; memory is the peak of the whole process.
type measured struct {
	wallSeconds, cpuSeconds float64
	peakRSSBytes            int64
	// rssBytes is what is resident now, where a job is about that.
	rssBytes int64
}

func now() mark {
	m := mark{at: time.Now()}
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &m.usage)
	return m
}

func (m mark) measured() measured {
	end := now()
	return measured{
		wallSeconds:  end.at.Sub(m.at).Seconds(),
		cpuSeconds:   cpuSeconds(&end.usage) - cpuSeconds(&m.usage),
		peakRSSBytes: end.usage.Maxrss * 1024,
	}
}

// cpuSeconds is that of all threads, the kernel's work for them included.
func cpuSeconds(usage *syscall.Rusage) float64 {
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

// answer is what the program got, short enough to compare: a count, and a sum that does not depend on the order.
type answer struct {
	count, sum uint64
}

func (a *answer) addKey(namespace, name string) {
	a.add(namespace + "/" + name)
}

// addNumber counts an object by a number that is quick to get, where a real answer would take longer than what is measured.
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
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"library":        library,
		"job":            arguments.job,
		"count":          arguments.count,
		"wall_seconds":   measured.wallSeconds,
		"cpu_seconds":    measured.cpuSeconds,
		"peak_rss_bytes": measured.peakRSSBytes,
		"rss_bytes":      measured.rssBytes,
		"answer":         fmt.Sprintf("%d:%016x", answer.count, answer.sum),
	})
}
