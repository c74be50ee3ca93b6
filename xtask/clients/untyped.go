package main

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// untyped defines a kind, finds it by discovery, and uses the dynamic client with its objects.
func untyped(ctx context.Context, config *rest.Config, _ *owner) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := define(ctx, client, "Widget", "widgets"); err != nil {
		return err
	}
	discovered, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovered))
	kind := schema.GroupKind{Group: "clients.klient.invalid", Kind: "Widget"}
	err = eventually(ctx, "the kind is discovered", func() bool {
		mapper.Reset()
		_, err := mapper.RESTMapping(kind, "v1")
		return err == nil
	})
	if err != nil {
		return err
	}
	mapping, err := mapper.RESTMapping(kind, "v1")
	if err != nil {
		return err
	}
	return widgets(ctx, client.Resource(mapping.Resource).Namespace("default"))
}

func widgets(ctx context.Context, api dynamic.ResourceInterface) error {
	made, err := api.Create(ctx, widget("one", 1), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	events, err := api.Watch(ctx, metav1.ListOptions{ResourceVersion: made.GetResourceVersion()})
	if err != nil {
		return err
	}
	defer events.Stop()
	_, err = api.Create(ctx, widget("bad", -1), metav1.CreateOptions{})
	if err := expect(apierrors.IsInvalid(err), "Invalid, not %v", err); err != nil {
		return err
	}
	patched, err := api.Patch(ctx, "one", types.MergePatchType, []byte(`{"spec": {"size": 2}}`), metav1.PatchOptions{})
	if err != nil {
		return err
	}
	if err := expect(patched.GetGeneration() == 2, "generation 2, not %d", patched.GetGeneration()); err != nil {
		return err
	}
	if err := unstructured.SetNestedField(patched.Object, "fine", "status", "phase"); err != nil {
		return err
	}
	if _, err := api.UpdateStatus(ctx, patched, metav1.UpdateOptions{}); err != nil {
		return err
	}
	_, err = api.Patch(ctx, "one", types.JSONPatchType,
		[]byte(`[{"op": "test", "path": "/status/phase", "value": "fine"}, {"op": "replace", "path": "/spec/size", "value": 3}]`),
		metav1.PatchOptions{})
	if err != nil {
		return err
	}
	if err := api.Delete(ctx, "one", metav1.DeleteOptions{}); err != nil {
		return err
	}
	for _, kind := range []watch.EventType{watch.Modified, watch.Modified, watch.Modified, watch.Deleted} {
		event := <-events.ResultChan()
		if err := expect(event.Type == kind, "%s, not %v", kind, event); err != nil {
			return err
		}
	}
	return nil
}

func widget(name string, size int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "clients.klient.invalid/v1",
		"kind":       "Widget",
		"metadata":   map[string]any{"name": name},
		"spec":       map[string]any{"size": size},
	}}
}

// define creates a custom resource definition with the field `spec.size` and the subresource `status`.
func define(ctx context.Context, client dynamic.Interface, kind, plural string) error {
	size := map[string]any{"type": "integer", "minimum": int64(0)}
	properties := map[string]any{
		"spec":   map[string]any{"type": "object", "properties": map[string]any{"size": size}},
		"status": map[string]any{"type": "object", "properties": map[string]any{"phase": map[string]any{"type": "string"}}},
	}
	version := map[string]any{
		"name": "v1", "served": true, "storage": true,
		"schema":       map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": properties}},
		"subresources": map[string]any{"status": map[string]any{}},
	}
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": plural + ".clients.klient.invalid"},
		"spec": map[string]any{
			"group":    "clients.klient.invalid",
			"scope":    "Namespaced",
			"names":    map[string]any{"kind": kind, "plural": plural},
			"versions": []any{version},
		},
	}}
	_, err := client.Resource(definitions).Create(ctx, definition, metav1.CreateOptions{})
	return err
}
