package main

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
)

// typed checks the usual requests of the typed client, in protobuf.
func typed(ctx context.Context, config *rest.Config, _ *owner) error {
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	if err := expect(version.Major == "1", "Kubernetes 1, not %s", version); err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "typed-"}}
	namespace, err = client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	for _, part := range []func(context.Context, kubernetes.Interface, string) error{deployments, pods, pages, conflicts} {
		if err := part(ctx, client, namespace.Name); err != nil {
			return err
		}
	}
	return client.CoreV1().Namespaces().Delete(ctx, namespace.Name, metav1.DeleteOptions{})
}

func deployments(ctx context.Context, client kubernetes.Interface, namespace string) error {
	api := client.AppsV1().Deployments(namespace)
	made, err := api.Create(ctx, deployment("web"), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	strategy := made.Spec.Strategy.Type
	err = expect(*made.Spec.Replicas == 1 && strategy == appsv1.RollingUpdateDeploymentStrategyType && made.Generation == 1,
		"defaults and a generation, not %v", made)
	if err != nil {
		return err
	}
	image := []byte(`{"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "nginx:2"}]}}}}`)
	patched, err := api.Patch(ctx, "web", types.StrategicMergePatchType, image, metav1.PatchOptions{})
	if err != nil {
		return err
	}
	containers := patched.Spec.Template.Spec.Containers
	err = expect(len(containers) == 1 && containers[0].Image == "nginx:2" && patched.Generation == 2, "a merged list, not %v", patched)
	if err != nil {
		return err
	}
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: autoscalingv1.ScaleSpec{Replicas: 5}}
	if scale, err = api.UpdateScale(ctx, "web", scale, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if err := expect(scale.Spec.Replicas == 5 && scale.Status.Selector == "app=web", "a scale, not %v", scale); err != nil {
		return err
	}
	found, err := api.Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return err
	}
	found.Status.ReadyReplicas, found.Status.Replicas, found.Spec.Paused = 4, 5, true
	if found, err = api.UpdateStatus(ctx, found, metav1.UpdateOptions{}); err != nil {
		return err
	}
	return expect(found.Status.ReadyReplicas == 4 && !found.Spec.Paused && *found.Spec.Replicas == 5 && found.Generation == 3,
		"a status and nothing else, not %v", found)
}

func pods(ctx context.Context, client kubernetes.Interface, namespace string) error {
	api := client.CoreV1().Pods(namespace)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: deployment("one").Spec.Template.Spec}
	if _, err := api.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := api.Create(ctx, pod, metav1.CreateOptions{})
	if err := expect(apierrors.IsAlreadyExists(err), "AlreadyExists, not %v", err); err != nil {
		return err
	}
	node := corev1.ObjectReference{Kind: "Node", Name: "somewhere"}
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Target: node}
	if err := api.Bind(ctx, binding, metav1.CreateOptions{}); err != nil {
		return err
	}
	bound, err := api.List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=somewhere"})
	if err != nil {
		return err
	}
	if err := expect(len(bound.Items) == 1, "a pod on the node, not %v", bound.Items); err != nil {
		return err
	}
	zero := int64(0)
	eviction := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: "one"},
		DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: &zero},
	}
	if err := api.EvictV1(ctx, eviction); err != nil {
		return err
	}
	_, err = api.Get(ctx, "one", metav1.GetOptions{})
	return expect(apierrors.IsNotFound(err), "NotFound, not %v", err)
}

// pages lists objects in chunks, and deletes a collection.
func pages(ctx context.Context, client kubernetes.Interface, namespace string) error {
	api := client.CoreV1().ConfigMaps(namespace)
	for i := range 7 {
		labels := map[string]string{"parity": []string{"even", "odd"}[i%2]}
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("page-%d", i), Labels: labels}}
		if _, err := api.Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	seen, options := 0, metav1.ListOptions{Limit: 2, LabelSelector: "parity"}
	for {
		page, err := api.List(ctx, options)
		if err != nil {
			return err
		}
		seen += len(page.Items)
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	if err := expect(seen == 7, "7 objects in pages, not %d", seen); err != nil {
		return err
	}
	selected := metav1.ListOptions{LabelSelector: "parity=odd"}
	if err := api.DeleteCollection(ctx, metav1.DeleteOptions{}, selected); err != nil {
		return err
	}
	left, err := api.List(ctx, metav1.ListOptions{LabelSelector: "parity"})
	if err != nil {
		return err
	}
	return expect(len(left.Items) == 4, "4 objects left, not %d", len(left.Items))
}

// conflicts checks that one of two writers gets a conflict, and that its retry succeeds.
func conflicts(ctx context.Context, client kubernetes.Interface, namespace string) error {
	api := client.CoreV1().ConfigMaps(namespace)
	stale, err := api.Get(ctx, "page-0", metav1.GetOptions{})
	if err != nil {
		return err
	}
	newer := stale.DeepCopy()
	newer.Data = map[string]string{"writer": "first"}
	if _, err := api.Update(ctx, newer, metav1.UpdateOptions{}); err != nil {
		return err
	}
	_, err = api.Update(ctx, stale, metav1.UpdateOptions{})
	if err := expect(apierrors.IsConflict(err), "a conflict, not %v", err); err != nil {
		return err
	}
	tries := 0
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		tries++
		object := stale
		if tries > 1 {
			if object, err = api.Get(ctx, "page-0", metav1.GetOptions{}); err != nil {
				return err
			}
		}
		_, err := api.Update(ctx, object, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	bad := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "Not a name"}}
	_, err = api.Create(ctx, bad, metav1.CreateOptions{})
	var status apierrors.APIStatus
	if err := expect(errors.As(err, &status) && apierrors.IsInvalid(err), "Invalid, not %v", err); err != nil {
		return err
	}
	causes := status.Status().Details.Causes
	return expect(len(causes) == 1 && causes[0].Field == "metadata.name", "a cause, not %v", causes)
}

func deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx:1"}}},
			},
		},
	}
}
