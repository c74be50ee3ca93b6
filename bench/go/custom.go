package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

var rollouts = schema.GroupVersionResource{Group: "bench.klient.invalid", Version: "v1", Resource: "rollouts"}

// syncCustom fills the cache of an informer for a kind known only at run time.
func syncCustom(ctx context.Context, config *rest.Config) (measured, *answer, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return measured{}, nil, err
	}
	mark := now()
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, fleet, nil)
	informer := factory.ForResource(rollouts).Informer()
	if err := informer.SetTransform(withoutManagedFields); err != nil {
		return measured{}, nil, err
	}
	var told atomic.Int64
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { told.Add(1) }})
	if err != nil {
		return measured{}, nil, err
	}
	factory.Start(ctx.Done())
	<-registration.HasSyncedChecker().Done()
	measured := mark.measured()
	measured.rest()
	answer := &answer{}
	for _, object := range informer.GetStore().List() {
		rollout := object.(*unstructured.Unstructured)
		containers, _, err := unstructured.NestedSlice(rollout.Object, "spec", "template", "spec", "containers")
		if err != nil || len(containers) == 0 {
			return measured, nil, fmt.Errorf("%s has no containers", rollout.GetName())
		}
		image, _ := containers[0].(map[string]any)["image"].(string)
		answer.add(rollout.GetNamespace() + "/" + rollout.GetName() + " " + image)
	}
	if int(told.Load()) != int(answer.count) {
		return measured, nil, errors.New("the handler was not told of everything")
	}
	return measured, answer, nil
}
