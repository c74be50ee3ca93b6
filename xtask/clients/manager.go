package main

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	controllerruntime "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const finalizer = "clients.klient.invalid/reports"

// manager runs a controller that creates a report for every deployment and sets its status.
func manager(ctx context.Context, config *rest.Config, owner *owner) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	controllerruntime.SetLogger(klog.Background())
	options := controllerruntime.Options{Metrics: metricsserver.Options{BindAddress: "0"}}
	runs, err := controllerruntime.NewManager(config, options)
	if err != nil {
		return err
	}
	err = controllerruntime.NewControllerManagedBy(runs).For(&appsv1.Deployment{}).Owns(&corev1.ConfigMap{}).
		Complete(&reports{runs.GetClient()})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- runs.Start(ctx) }()
	direct, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	if err := follow(ctx, direct, owner); err != nil {
		return err
	}
	cancel()
	return <-ended
}

func follow(ctx context.Context, direct client.Client, owner *owner) error {
	object := deployment("managed")
	object.Namespace = "default"
	if err := direct.Create(ctx, object); err != nil {
		return err
	}
	report := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "managed-report"}}
	err := eventually(ctx, "a report and a status", func() bool {
		return direct.Get(ctx, client.ObjectKeyFromObject(report), report) == nil &&
			direct.Get(ctx, client.ObjectKeyFromObject(object), object) == nil && object.Status.ObservedGeneration == 1
	})
	if err != nil {
		return err
	}
	if err := expect(metav1.IsControlledBy(report, object), "an owned report, not %v", report); err != nil {
		return err
	}
	if err := owner.ask("end-watches"); err != nil {
		return err
	}
	// The controller creates the report again after another client deletes it.
	if err := direct.Delete(ctx, report); err != nil {
		return err
	}
	first := report.UID
	err = eventually(ctx, "another report", func() bool {
		return direct.Get(ctx, client.ObjectKeyFromObject(report), report) == nil && report.UID != first
	})
	if err != nil {
		return err
	}
	if err := direct.Delete(ctx, object); err != nil {
		return err
	}
	return eventually(ctx, "all is gone", func() bool {
		return apierrors.IsNotFound(direct.Get(ctx, client.ObjectKeyFromObject(object), object)) &&
			apierrors.IsNotFound(direct.Get(ctx, client.ObjectKeyFromObject(report), report))
	})
}

// reports reconciles deployments.
type reports struct {
	client.Client
}

func (r *reports) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := &appsv1.Deployment{}
	if err := r.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !object.DeletionTimestamp.IsZero() {
		// The garbage collector deletes the report with its owner.
		patch := client.MergeFrom(object.DeepCopy())
		controllerutil.RemoveFinalizer(object, finalizer)
		return reconcile.Result{}, client.IgnoreNotFound(r.Patch(ctx, object, patch))
	}
	if controllerutil.AddFinalizer(object, finalizer) {
		return reconcile.Result{}, r.Update(ctx, object)
	}
	report := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: object.Name + "-report"}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, report, func() error {
		report.Data = map[string]string{"image": object.Spec.Template.Spec.Containers[0].Image}
		return controllerutil.SetControllerReference(object, report, r.Scheme())
	})
	if err != nil || object.Status.ObservedGeneration == object.Generation {
		return reconcile.Result{}, err
	}
	object.Status.ObservedGeneration = object.Generation
	return reconcile.Result{}, r.Status().Update(ctx, object)
}
