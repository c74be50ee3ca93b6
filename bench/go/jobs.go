package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// spread runs one goroutine per worker, each with its share of the numbers. It returns the last pods.
func spread(arguments *arguments, ask func(number int) (*corev1.Pod, error)) (*answer, error) {
	type outcome struct {
		last *corev1.Pod
		err  error
	}
	ended := make(chan outcome)
	for worker := range arguments.concurrency {
		go func() {
			var last *corev1.Pod
			for number := worker; number < arguments.count; number += arguments.concurrency {
				pod, err := ask(number)
				if err != nil {
					ended <- outcome{err: err}
					return
				}
				last = pod
			}
			ended <- outcome{last: last}
		}()
	}
	answer := &answer{}
	var failed error
	for range arguments.concurrency {
		worker := <-ended
		switch {
		case worker.err != nil:
			failed = worker.err
		case worker.last == nil:
			failed = errors.New("a worker had nothing to do")
		default:
			answer.addPod(worker.last)
		}
	}
	return answer, failed
}

// check returns an error unless a response contains the requested object.
func check(pod *corev1.Pod, err error, name string) (*corev1.Pod, error) {
	if err == nil && pod.Name != name {
		err = fmt.Errorf("asked for %s, got %s", name, pod.Name)
	}
	return pod, err
}

func get(ctx context.Context, arguments *arguments, clientset *kubernetes.Clientset) (measured, *answer, error) {
	api := pods(clientset)
	mark := now()
	answer, err := spread(arguments, func(number int) (*corev1.Pod, error) {
		name := name(number % arguments.size)
		pod, err := api.Get(ctx, name, metav1.GetOptions{})
		return check(pod, err, name)
	})
	return mark.measured(), answer, err
}

func list(ctx context.Context, arguments *arguments, clientset *kubernetes.Clientset) (measured, *answer, error) {
	api := pods(clientset)
	mark := now()
	var last *corev1.PodList
	for range arguments.count {
		list, err := api.List(ctx, metav1.ListOptions{})
		if err != nil {
			return measured{}, nil, err
		}
		if len(list.Items) != arguments.size {
			return measured{}, nil, fmt.Errorf("%d objects", len(list.Items))
		}
		last = list
	}
	return mark.measured(), listed(last), nil
}

func listed(list *corev1.PodList) *answer {
	answer := &answer{}
	for i := range list.Items {
		answer.addPod(&list.Items[i])
	}
	return answer
}

func create(ctx context.Context, arguments *arguments, clientset *kubernetes.Clientset) (measured, *answer, error) {
	api := clientset.CoreV1().Pods(made)
	objects, err := arguments.pods()
	if err != nil {
		return measured{}, nil, err
	}
	mark := now()
	_, err = spread(arguments, func(number int) (*corev1.Pod, error) {
		pod, err := api.Create(ctx, objects[number], metav1.CreateOptions{})
		return check(pod, err, name(number))
	})
	measured := mark.measured()
	if err != nil {
		return measured, nil, err
	}
	list, err := api.List(ctx, metav1.ListOptions{})
	if err != nil {
		return measured, nil, err
	}
	all := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
	return measured, listed(list), api.DeleteCollection(ctx, all, metav1.ListOptions{})
}

func patch(ctx context.Context, arguments *arguments, clientset *kubernetes.Clientset) (measured, *answer, error) {
	api := pods(clientset)
	options := metav1.PatchOptions{FieldManager: fieldManager}
	mark := now()
	answer, err := spread(arguments, func(number int) (*corev1.Pod, error) {
		name := name(number % arguments.size)
		// The patch differs in every process, so that every patch changes the object.
		change := fmt.Sprintf(`{"metadata":{"annotations":{"bench.klient.invalid/step":"%d-%d","%s":"8888888888888888888"}}}`, os.Getpid(), number, toldAt)
		pod, err := api.Patch(ctx, name, types.MergePatchType, []byte(change), options)
		return check(pod, err, name)
	})
	return mark.measured(), answer, err
}

func watchKeys(ctx context.Context, arguments *arguments, clientset *kubernetes.Clientset) (measured, *answer, error) {
	return follow(ctx, arguments, clientset, func(answer *answer, pod *corev1.Pod) { answer.addKey(pod.Namespace, pod.Name) })
}

func watchTyped(ctx context.Context, arguments *arguments, clientset *kubernetes.Clientset) (measured, *answer, error) {
	return follow(ctx, arguments, clientset, (*answer).addPod)
}

// follow receives past events as fast as they arrive.
func follow(ctx context.Context, arguments *arguments, clientset *kubernetes.Clientset, take func(*answer, *corev1.Pod)) (measured, *answer, error) {
	answer := &answer{}
	mark := now()
	events, err := pods(clientset).Watch(ctx, metav1.ListOptions{ResourceVersion: arguments.since})
	if err != nil {
		return measured{}, nil, err
	}
	defer events.Stop()
	for range arguments.count {
		event := <-events.ResultChan()
		pod, isPod := event.Object.(*corev1.Pod)
		if event.Type != watch.Modified || !isPod {
			return measured{}, nil, fmt.Errorf("%s %v", event.Type, event.Object)
		}
		take(answer, pod)
	}
	return mark.measured(), answer, nil
}
