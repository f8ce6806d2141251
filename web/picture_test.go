package web

// Needs Chromium.

import (
	"context"
	"os"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// TestPicture makes the documents' picture, see picture.sh.
func TestPicture(t *testing.T) {
	name := os.Getenv("RDX_WEB_PICTURE")
	if name == "" {
		t.Skip("makes docs/web.png only for web/picture.sh")
	}
	b := openBrowser(t)
	url := serve(t, testSource(t), example(t, "bad.pb.gz"), example(t, "good.pb.gz"), example(t, "words.pb.gz"))
	b.run(emulation.SetDeviceMetricsOverride(1280, 800, 1.5, false), page.BringToFront())
	b.show(url, "page=code&profile=0", "code")
	b.await("document.querySelector('.lines .code') && document.querySelector('.flame canvas')")
	b.click("table.pairs tbody tr")
	b.await("document.querySelector('tr.chosen')")
	var png []byte
	b.run(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		png, err = page.CaptureScreenshot().WithFormat(page.CaptureScreenshotFormatPng).Do(ctx)
		return err
	}))
	if err := os.WriteFile(name, png, 0o644); err != nil {
		t.Fatal(err)
	}
}
