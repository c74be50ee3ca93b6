// Makes the pods beside this folder with the serializers of Kubernetes itself, the same objects in both forms:
// `go mod tidy && go run . ..`, in this folder. Benchmarks and tests compare the two.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"os"
	"time"
)

func ptr[T any](v T) *T { return &v }
func pod(i int) *corev1.Pod {
	name := fmt.Sprintf("checkout-api-7d9c5b8f6d-%05d", i)
	t0 := metav1.NewTime(time.Unix(1760000000+int64(i), 0).UTC())
	uid := fmt.Sprintf("8f14e45f-ceea-467f-9a3b-%012x", i)
	mkC := func(n string, port int32) corev1.Container {
		return corev1.Container{
			Name: n, Image: "registry.example.com/shop/" + n + "@sha256:3f5a8c0f2b7d6e1c9a4b5d8e7f60123456789abcdef0123456789abcdef01234",
			Args:  []string{"--config=/etc/" + n + "/config.yaml", "--log-format=json", "--zone=eu-central-1a"},
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: port, Protocol: "TCP"}, {Name: "metrics", ContainerPort: port + 1000, Protocol: "TCP"}},
			Env: []corev1.EnvVar{
				{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}},
				{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "status.podIP"}}},
				{Name: "DB_PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: n + "-db"}, Key: "password"}}},
				{Name: "GOMAXPROCS", Value: "2"},
			},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("250m"), "memory": resource.MustParse("256Mi")},
				Limits:   corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("512Mi")},
			},
			VolumeMounts:           []corev1.VolumeMount{{Name: "config", MountPath: "/etc/" + n, ReadOnly: true}, {Name: "kube-api-access-x2x5q", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}},
			LivenessProbe:          &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(port), Scheme: "HTTP"}}, InitialDelaySeconds: 10, TimeoutSeconds: 1, PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 3},
			ReadinessProbe:         &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromString("http"), Scheme: "HTTP"}}, TimeoutSeconds: 1, PeriodSeconds: 5, SuccessThreshold: 1, FailureThreshold: 3},
			TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: "File", ImagePullPolicy: "IfNotPresent",
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr(false), ReadOnlyRootFilesystem: ptr(true), RunAsNonRoot: ptr(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
		}
	}
	st := func(n string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: n, Ready: true, Started: ptr(true), Image: "registry.example.com/shop/" + n + ":v1.42.0", ImageID: "registry.example.com/shop/" + n + "@sha256:3f5a8c0f2b7d6e1c9a4b5d8e7f60123456789abcdef0123456789abcdef01234", ContainerID: "containerd://9b1deb4d3b7d4bad9bdd2b0d7b3dcb6d9b1deb4d3b7d4bad9bdd2b0d7b3dcb6d", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: t0}}}
	}
	fields := func(s string) *metav1.FieldsV1 {
		var b bytes.Buffer
		json.Compact(&b, []byte(s))
		return &metav1.FieldsV1{Raw: b.Bytes()}
	}
	kcm := `{"f:metadata":{"f:generateName":{},"f:annotations":{".":{},"f:checksum/config":{},"f:prometheus.io/port":{},"f:prometheus.io/scrape":{}},"f:labels":{".":{},"f:app.kubernetes.io/component":{},"f:app.kubernetes.io/instance":{},"f:app.kubernetes.io/name":{},"f:pod-template-hash":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"5e9f8a34-1111-4c1e-8d0a-2b0f5a2f7c11\"}":{}}},"f:spec":{"f:affinity":{".":{},"f:podAntiAffinity":{".":{},"f:preferredDuringSchedulingIgnoredDuringExecution":{}}},"f:containers":{"k:{\"name\":\"checkout-api\"}":{".":{},"f:args":{},"f:env":{".":{},"k:{\"name\":\"DB_PASSWORD\"}":{".":{},"f:name":{},"f:valueFrom":{".":{},"f:secretKeyRef":{}}},"k:{\"name\":\"GOMAXPROCS\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"POD_IP\"}":{".":{},"f:name":{},"f:valueFrom":{".":{},"f:fieldRef":{}}},"k:{\"name\":\"POD_NAME\"}":{".":{},"f:name":{},"f:valueFrom":{".":{},"f:fieldRef":{}}}},"f:image":{},"f:imagePullPolicy":{},"f:livenessProbe":{".":{},"f:failureThreshold":{},"f:httpGet":{".":{},"f:path":{},"f:port":{},"f:scheme":{}},"f:initialDelaySeconds":{},"f:periodSeconds":{},"f:successThreshold":{},"f:timeoutSeconds":{}},"f:name":{},"f:ports":{".":{},"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:name":{},"f:protocol":{}},"k:{\"containerPort\":9080,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:name":{},"f:protocol":{}}},"f:readinessProbe":{".":{},"f:failureThreshold":{},"f:httpGet":{".":{},"f:path":{},"f:port":{},"f:scheme":{}},"f:periodSeconds":{},"f:successThreshold":{},"f:timeoutSeconds":{}},"f:resources":{".":{},"f:limits":{".":{},"f:cpu":{},"f:memory":{}},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}},"f:securityContext":{".":{},"f:allowPrivilegeEscalation":{},"f:capabilities":{".":{},"f:drop":{}},"f:readOnlyRootFilesystem":{},"f:runAsNonRoot":{}},"f:terminationMessagePath":{},"f:terminationMessagePolicy":{},"f:volumeMounts":{".":{},"k:{\"mountPath\":\"/etc/checkout-api\"}":{".":{},"f:mountPath":{},"f:name":{},"f:readOnly":{}}}}},"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:serviceAccount":{},"f:serviceAccountName":{},"f:terminationGracePeriodSeconds":{},"f:volumes":{".":{},"k:{\"name\":\"config\"}":{".":{},"f:configMap":{".":{},"f:defaultMode":{},"f:name":{}},"f:name":{}}}}}`
	kubelet := `{"f:status":{"f:conditions":{"k:{\"type\":\"ContainersReady\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Initialized\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Ready\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}}},"f:containerStatuses":{},"f:hostIP":{},"f:hostIPs":{},"f:phase":{},"f:podIP":{},"f:podIPs":{".":{},"k:{\"ip\":\"10.42.7.19\"}":{".":{},"f:ip":{}}},"f:startTime":{}}}`
	cond := func(t corev1.PodConditionType) corev1.PodCondition {
		return corev1.PodCondition{Type: t, Status: "True", LastTransitionTime: t0}
	}
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, GenerateName: "checkout-api-7d9c5b8f6d-", Namespace: fmt.Sprintf("shop-%02d", i%40), UID: types.UID(uid), ResourceVersion: fmt.Sprint(48100000 + i), CreationTimestamp: t0,
			Labels:          map[string]string{"app.kubernetes.io/name": "checkout-api", "app.kubernetes.io/instance": "checkout-api-prod", "app.kubernetes.io/component": "backend", "pod-template-hash": "7d9c5b8f6d"},
			Annotations:     map[string]string{"checksum/config": "0f343b0931126a20f133d67c2b018a3b0f343b0931126a20f133d67c2b018a3b", "prometheus.io/port": "9080", "prometheus.io/scrape": "true"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "checkout-api-7d9c5b8f6d", UID: "5e9f8a34-1111-4c1e-8d0a-2b0f5a2f7c11", Controller: ptr(true), BlockOwnerDeletion: ptr(true)}},
			ManagedFields: []metav1.ManagedFieldsEntry{
				{Manager: "kube-controller-manager", Operation: "Update", APIVersion: "v1", Time: &t0, FieldsType: "FieldsV1", FieldsV1: fields(kcm)},
				{Manager: "kubelet", Operation: "Update", APIVersion: "v1", Time: &t0, FieldsType: "FieldsV1", FieldsV1: fields(kubelet), Subresource: "status"},
			},
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{mkC("checkout-api", 8080), mkC("envoy-sidecar", 15000)},
			Volumes: []corev1.Volume{
				{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "checkout-api"}, DefaultMode: ptr(int32(420))}}},
				{Name: "kube-api-access-x2x5q", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: ptr(int32(420)), Sources: []corev1.VolumeProjection{
					{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: ptr(int64(3607)), Path: "token"}},
					{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
					{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}}}}},
				}}}},
			},
			RestartPolicy: "Always", TerminationGracePeriodSeconds: ptr(int64(30)), DNSPolicy: "ClusterFirst", ServiceAccountName: "checkout-api", DeprecatedServiceAccount: "checkout-api", NodeName: fmt.Sprintf("ip-10-0-%d-%d.eu-central-1.compute.internal", i%250, i%200), SecurityContext: &corev1.PodSecurityContext{}, SchedulerName: "default-scheduler",
			Tolerations: []corev1.Toleration{{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: ptr(int64(300))}, {Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: ptr(int64(300))}},
			Priority:    ptr(int32(0)), EnableServiceLinks: ptr(true), PreemptionPolicy: ptr(corev1.PreemptLowerPriority),
			Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 100, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: "kubernetes.io/hostname", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": "checkout-api"}}}}}}},
		},
		Status: corev1.PodStatus{Phase: "Running", Conditions: []corev1.PodCondition{cond("PodReadyToStartContainers"), cond("Initialized"), cond("Ready"), cond("ContainersReady"), cond("PodScheduled")}, HostIP: "10.0.7.12", HostIPs: []corev1.HostIP{{IP: "10.0.7.12"}}, PodIP: "10.42.7.19", PodIPs: []corev1.PodIP{{IP: "10.42.7.19"}}, StartTime: &t0, QOSClass: "Burstable", ContainerStatuses: []corev1.ContainerStatus{st("checkout-api"), st("envoy-sidecar")}},
	}
}
func main() {
	s := runtime.NewScheme()
	corev1.AddToScheme(s)
	ser := protobuf.NewSerializer(s, s)
	enc := func(o runtime.Object) []byte {
		var b bytes.Buffer
		if err := ser.Encode(o, &b); err != nil {
			panic(err)
		}
		return b.Bytes()
	}
	out := os.Args[1]
	p := pod(7)
	j, _ := json.Marshal(p)
	os.WriteFile(out+"/pod.json", j, 0644)
	os.WriteFile(out+"/pod.pb", enc(p), 0644)
	l := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "48200000", Continue: "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ", RemainingItemCount: ptr(int64(12))}}
	for i := 0; i < 3; i++ {
		q := pod(i)
		q.TypeMeta = metav1.TypeMeta{}
		l.Items = append(l.Items, *q)
	}
	j, _ = json.Marshal(l)
	os.WriteFile(out+"/pod_list.json", append(j, '\n'), 0644)
	os.WriteFile(out+"/pod_list.pb", enc(l), 0644)
}
