// This program tests client-go and controller-runtime against the embedded API server.
//
// The parent process owns the server. A line `do: WORD` on standard output requests a fault. The parent responds with a line
// on standard input when the fault is in effect.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	fmt.Println("all is well")
}

func run(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	config.QPS = -1
	asked := &owner{answers: bufio.NewReader(os.Stdin)}
	for _, part := range []struct {
		name string
		run  func(context.Context, *rest.Config, *owner) error
	}{
		{"typed client", typed},
		{"dynamic client", untyped},
		{"shared informers", informers},
		{"leader election", leaders},
		{"controller-runtime", manager},
	} {
		start := time.Now()
		if err := part.run(ctx, rest.CopyConfig(config), asked); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		fmt.Printf("%s: passed in %d ms\n", part.name, time.Since(start).Milliseconds())
	}
	return nil
}

// owner is the process that owns the server.
type owner struct {
	answers *bufio.Reader
}

// ask requests a fault from the owner, and waits for the response.
func (o *owner) ask(word string) error {
	fmt.Println("do:", word)
	answer, err := o.answers.ReadString('\n')
	if err == nil && answer != "done\n" {
		err = fmt.Errorf("the owner says %q", answer)
	}
	return err
}

// expect returns an error if the condition is false.
func expect(so bool, format string, arguments ...any) error {
	if so {
		return nil
	}
	return fmt.Errorf("expected "+format, arguments...)
}

// eventually waits until the condition is true, for at most 30 seconds.
func eventually(ctx context.Context, what string, so func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for !so() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain: %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}
