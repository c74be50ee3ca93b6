// A kubelet for tests: Kubernetes' own streaming server in front of local processes and ports.
//
// Any pod name is accepted. exec runs the command on this machine, attach talks to a `cat`, port-forward dials the port on the
// loopback address, and logs are numbered lines. The server listens on the port that is given as the first argument.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/creack/pty"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

const (
	idle     = 4 * time.Hour
	creation = 30 * time.Second
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: kubelet PORT")
	}
	certificate, err := selfSigned()
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{
		Addr:    "127.0.0.1:" + os.Args[1],
		Handler: handler(),
		// Streams need HTTP/1.1.
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"http/1.1"}},
	}
	log.Fatal(server.ListenAndServeTLS("", ""))
}

func handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		options, err := remotecommand.NewOptions(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		remotecommand.ServeExec(w, r, processes{}, r.PathValue("pod"), "", r.PathValue("container"), r.URL.Query()["command"],
			options, idle, creation, remotecommand.SupportedStreamingProtocols)
	})
	mux.HandleFunc("/attach/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		options, err := remotecommand.NewOptions(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		remotecommand.ServeAttach(w, r, processes{}, r.PathValue("pod"), "", r.PathValue("container"),
			options, idle, creation, remotecommand.SupportedStreamingProtocols)
	})
	mux.HandleFunc("/portForward/{namespace}/{pod}", func(w http.ResponseWriter, r *http.Request) {
		options, err := portforward.NewV4Options(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		portforward.ServePortForward(w, r, processes{}, r.PathValue("pod"), "", options, idle, creation, portforward.SupportedProtocols)
	})
	mux.HandleFunc("/containerLogs/{namespace}/{pod}/{container}", logs)
	return mux
}

// processes runs commands of this machine.
type processes struct{}

func (processes) ExecInContainer(ctx context.Context, _, _, _ string, command []string, in io.Reader, out, err io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
	return run(ctx, command, in, out, err, tty, resize)
}

func (processes) AttachContainer(ctx context.Context, _, _, _ string, in io.Reader, out, err io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) error {
	return run(ctx, []string{"sh", "-c", "echo attached; exec cat"}, in, out, err, tty, resize)
}

func run(ctx context.Context, command []string, in io.Reader, out, stderr io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) error {
	child := exec.CommandContext(ctx, command[0], command[1:]...)
	if tty {
		terminal, err := pty.Start(child)
		if err != nil {
			return err
		}
		defer terminal.Close()
		go func() {
			for size := range resize {
				_ = pty.Setsize(terminal, &pty.Winsize{Rows: size.Height, Cols: size.Width})
			}
		}()
		if in != nil {
			go io.Copy(terminal, in)
		}
		if out != nil {
			// The end of the process is an input/output error here.
			_, _ = io.Copy(out, terminal)
		}
		return exited(child.Wait())
	}
	if out != nil {
		child.Stdout = out
	}
	if stderr != nil {
		child.Stderr = stderr
	}
	if in == nil {
		return exited(child.Run())
	}
	// Not child.Stdin: Wait would wait for the client to end its input, which it may never do.
	pipe, err := child.StdinPipe()
	if err != nil {
		return err
	}
	if err := child.Start(); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(pipe, in)
		_ = pipe.Close()
	}()
	return exited(child.Wait())
}

// exited turns an exit code into the error that the streaming server reports as one.
func exited(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	code := exit.ExitCode()
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		// As a shell reports it.
		code = 128 + int(status.Signal())
	}
	return utilexec.CodeExitError{Err: fmt.Errorf("exit status %d", code), Code: code}
}

func (processes) PortForward(_ context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	socket, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err != nil {
		return err
	}
	defer socket.Close()
	received := make(chan struct{})
	go func() {
		defer close(received)
		_, _ = io.Copy(stream, socket)
	}()
	_, _ = io.Copy(socket, stream)
	_ = socket.(*net.TCPConn).CloseWrite()
	<-received
	return nil
}

// logs writes ten lines, and with `follow` one more each millisecond until there are a thousand.
func logs(w http.ResponseWriter, r *http.Request) {
	first, last := 0, 10
	if tail, err := strconv.Atoi(r.URL.Query().Get("tailLines")); err == nil && tail < last {
		first = last - tail
	}
	follow := r.URL.Query().Get("follow") == "true"
	if follow {
		last = 1000
	}
	w.Header().Set("Content-Type", "text/plain")
	for number := first; number < last; number++ {
		var line strings.Builder
		if r.URL.Query().Get("timestamps") == "true" {
			line.WriteString(time.Now().UTC().Format(time.RFC3339Nano) + " ")
		}
		fmt.Fprintf(&line, "line %d of %s\n", number, r.PathValue("container"))
		if _, err := io.WriteString(w, line.String()); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		if follow {
			time.Sleep(time.Millisecond)
		}
	}
}

func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
