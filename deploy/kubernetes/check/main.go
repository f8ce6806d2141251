// Command check decodes manifests strictly into the types of Kubernetes: an unknown field, a
// field of another type or a kind that is not known is an error.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"gopkg.in/yaml.v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: check FILE...")
		os.Exit(2)
	}
	for _, path := range os.Args[1:] {
		n, err := check(path)
		if err != nil {
			fmt.Fprintf(os.Stderr, "check: %s: %v\n", path, err)
			os.Exit(1)
		}
		fmt.Printf("%s: %d objects are right\n", path, n)
	}
}

func check(path string) (n int, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, rbacv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return 0, err
		}
	}
	strict := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	for d := yaml.NewDecoder(bytes.NewReader(b)); ; n++ {
		var one yaml.Node
		if err := d.Decode(&one); errors.Is(err, io.EOF) {
			return n, nil
		} else if err != nil {
			return n, err
		}
		text, err := yaml.Marshal(&one)
		if err != nil {
			return n, err
		}
		if _, _, err := strict.Decode(text, nil, nil); err != nil {
			return n, fmt.Errorf("object %d, line %d: %w", n+1, one.Line, err)
		}
	}
}
