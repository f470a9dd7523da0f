//go:build !karpenter_v1_14

package main

import (
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/operator/options"
)

// karpenterVersion is the release that answers.
const karpenterVersion = "v1.15.0"

func setVolumeLimits(it *cloudprovider.InstanceType, limits map[string]int) {
	it.VolumeAttachmentLimits = limits
}

// setSchedulerConfig takes the value of SCHEDULER_CONFIG; empty means none.
func setSchedulerConfig(into *options.Options, raw string) (err error) {
	into.SchedulerConfig, err = options.ParseSchedulerConfiguration(raw)
	return err
}
