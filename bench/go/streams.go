package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
)

const (
	megabyte = 1 << 20
	// turn is the number of bytes of a short request, and of its response.
	turn = 100
)

type stream func(context.Context, *arguments, *rest.Config, *kubernetes.Clientset) (measured, *answer, error)

// streams are the jobs of exec and port-forward.
var streams = map[string]stream{
	"exec-read":       execRead,
	"exec-read-spdy":  execRead,
	"exec-write":      execWrite,
	"exec-write-spdy": execWrite,
	"forward-read":    forwardRead,
	"forward-write":   forwardWrite,
	"forward-turns":   forwardTurns,
}

// counter counts the bytes that are written to it.
type counter struct{ bytes int }

func (c *counter) Write(data []byte) (int, error) {
	c.bytes += len(data)
	return len(data), nil
}

// zeros is an input of a number of bytes.
type zeros struct{ left int }

func (z *zeros) Read(data []byte) (int, error) {
	if z.left == 0 {
		return 0, io.EOF
	}
	read := min(len(data), z.left)
	clear(data[:read])
	z.left -= read
	return read, nil
}

// moved returns the result of a job that moved a number of bytes.
func moved(arguments *arguments, bytes int) (*answer, error) {
	if bytes != arguments.count*megabyte {
		return nil, fmt.Errorf("%d bytes for %d megabytes", bytes, arguments.count)
	}
	answer := &answer{}
	for range arguments.count {
		answer.addNumber(1)
	}
	return answer, nil
}

// of returns the URL of a subresource of the pod.
func of(clientset *kubernetes.Clientset, subresource string, options *corev1.PodExecOptions) *url.URL {
	request := clientset.CoreV1().RESTClient().Post().Namespace(fleet).Resource("pods").Name(name(0)).SubResource(subresource)
	if options != nil {
		request = request.VersionedParams(options, scheme.ParameterCodec)
	}
	return request.URL()
}

func executor(arguments *arguments, config *rest.Config, address *url.URL) (remotecommand.Executor, error) {
	if strings.HasSuffix(arguments.job, "-spdy") {
		return remotecommand.NewSPDYExecutor(config, http.MethodPost, address)
	}
	return remotecommand.NewWebSocketExecutor(config, http.MethodGet, address.String())
}

func execRead(ctx context.Context, arguments *arguments, config *rest.Config, clientset *kubernetes.Clientset) (measured, *answer, error) {
	command := []string{"head", "-c", strconv.Itoa(arguments.count * megabyte), "/dev/zero"}
	address := of(clientset, "exec", &corev1.PodExecOptions{Command: command, Stdout: true, Stderr: true})
	output, problems := &counter{}, &counter{}
	mark := now()
	executor, err := executor(arguments, config, address)
	if err != nil {
		return measured{}, nil, err
	}
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: output, Stderr: problems})
	if err != nil {
		return measured{}, nil, err
	}
	measured := mark.measured()
	answer, err := moved(arguments, output.bytes)
	return measured, answer, err
}

func execWrite(ctx context.Context, arguments *arguments, config *rest.Config, clientset *kubernetes.Clientset) (measured, *answer, error) {
	options := &corev1.PodExecOptions{Command: []string{"wc", "-c"}, Stdin: true, Stdout: true, Stderr: true}
	address := of(clientset, "exec", options)
	output, problems := &bytes.Buffer{}, &counter{}
	mark := now()
	executor, err := executor(arguments, config, address)
	if err != nil {
		return measured{}, nil, err
	}
	input := &zeros{left: arguments.count * megabyte}
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: input, Stdout: output, Stderr: problems})
	if err != nil {
		return measured{}, nil, err
	}
	measured := mark.measured()
	written, err := strconv.Atoi(strings.TrimSpace(output.String()))
	if err != nil {
		return measured, nil, err
	}
	answer, err := moved(arguments, written)
	return measured, answer, err
}

// connect opens one forwarded connection, as the library's own listener does for each socket.
func connect(arguments *arguments, connection httpstream.Connection) (data, problems httpstream.Stream, err error) {
	_, port, found := strings.Cut(arguments.replay, ":")
	if !found {
		return nil, nil, errors.New("no address of a program is given")
	}
	headers := http.Header{}
	headers.Set(corev1.PortHeader, port)
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	problems, err = connection.CreateStream(headers)
	if err != nil {
		return nil, nil, err
	}
	_ = problems.Close()
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err = connection.CreateStream(headers)
	return data, problems, err
}

// forward measures work on one forwarded connection.
func forward(arguments *arguments, config *rest.Config, clientset *kubernetes.Clientset, what byte, length int, work func(data io.ReadWriter) (*answer, error)) (measured, *answer, error) {
	dialer, err := portforward.NewSPDYOverWebsocketDialer(of(clientset, "portforward", nil), config)
	if err != nil {
		return measured{}, nil, err
	}
	connection, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return measured{}, nil, err
	}
	defer connection.Close()
	mark := now()
	data, _, err := connect(arguments, connection)
	if err != nil {
		return measured{}, nil, err
	}
	first := binary.BigEndian.AppendUint64([]byte{what}, uint64(length))
	if _, err := data.Write(first); err != nil {
		return measured{}, nil, err
	}
	answer, err := work(data)
	return mark.measured(), answer, err
}

func forwardRead(_ context.Context, arguments *arguments, config *rest.Config, clientset *kubernetes.Clientset) (measured, *answer, error) {
	return forward(arguments, config, clientset, 'r', arguments.count*megabyte, func(data io.ReadWriter) (*answer, error) {
		output := &counter{}
		if _, err := io.Copy(output, data); err != nil {
			return nil, err
		}
		return moved(arguments, output.bytes)
	})
}

func forwardWrite(_ context.Context, arguments *arguments, config *rest.Config, clientset *kubernetes.Clientset) (measured, *answer, error) {
	length := arguments.count * megabyte
	return forward(arguments, config, clientset, 'w', length, func(data io.ReadWriter) (*answer, error) {
		if _, err := io.Copy(data, &zeros{left: length}); err != nil {
			return nil, err
		}
		received := make([]byte, 1)
		if _, err := io.ReadFull(data, received); err != nil {
			return nil, err
		}
		return moved(arguments, length)
	})
}

func forwardTurns(_ context.Context, arguments *arguments, config *rest.Config, clientset *kubernetes.Clientset) (measured, *answer, error) {
	return forward(arguments, config, clientset, 'e', 0, func(data io.ReadWriter) (*answer, error) {
		answer := &answer{}
		request, response := make([]byte, turn), make([]byte, turn)
		for range arguments.count {
			if _, err := data.Write(request); err != nil {
				return nil, err
			}
			if _, err := io.ReadFull(data, response); err != nil {
				return nil, err
			}
			answer.addNumber(1)
		}
		return answer, nil
	})
}
