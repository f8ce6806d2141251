package web

import (
	"context"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
)

func setScheme(ctx context.Context, scheme string) error {
	return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}).Do(ctx)
}

func goOffline(ctx context.Context) error { return network.OverrideNetworkState(true, 0, 0, 0).Do(ctx) }
