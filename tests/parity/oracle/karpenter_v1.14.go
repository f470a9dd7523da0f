//go:build karpenter_v1_14

package main

import (
	"errors"

	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/operator/options"
)

// karpenterVersion is the release that answers.
const karpenterVersion = "v1.14.1"

// setVolumeLimits: this release has no attachment limits of instance types.
func setVolumeLimits(*cloudprovider.InstanceType, map[string]int) {}

// setSchedulerConfig: this release has no default topology spread.
func setSchedulerConfig(_ *options.Options, raw string) error {
	if raw != "" {
		return errors.New("options.schedulerConfig: not in this release of Karpenter")
	}
	return nil
}
