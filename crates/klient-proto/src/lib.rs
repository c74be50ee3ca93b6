//! Kubernetes wire forms.
