// Vectors records what the Go libraries of Kubernetes make of the inputs beside it.
//
//	cd tools/vectors && go run . ../../tests/meta/patches/vectors
//
// The inputs are ours; the results are theirs, and each file says of which version.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"runtime/debug"
	"sort"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

type object = map[string]any

var kinds = map[string]any{
	"Pod":        corev1.Pod{},
	"Service":    corev1.Service{},
	"Deployment": appsv1.Deployment{},
	"ConfigMap":  corev1.ConfigMap{},
}

var versions = map[string]schema.GroupVersionKind{
	"Pod":        corev1.SchemeGroupVersion.WithKind("Pod"),
	"Service":    corev1.SchemeGroupVersion.WithKind("Service"),
	"ConfigMap":  corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	"Deployment": appsv1.SchemeGroupVersion.WithKind("Deployment"),
	"Any":        {Group: "example.org", Version: "v1", Kind: "Any"},
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: vectors FOLDER")
	}
	folder := os.Args[1]
	record(folder, "json", []string{"gopkg.in/evanphx/json-patch.v4"}, recordJSON)
	record(folder, "merge", []string{"gopkg.in/evanphx/json-patch.v4", "k8s.io/apimachinery"}, recordMerge)
	record(folder, "strategic", []string{"k8s.io/apimachinery", "k8s.io/api"}, recordStrategic)
	record(folder, "apply", []string{"k8s.io/apimachinery", "k8s.io/client-go", "sigs.k8s.io/structured-merge-diff/v6"}, recordApply)
}

// record reads inputs/NAME.yaml, adds the results to each case and writes FOLDER/NAME.json.
func record(folder, name string, libraries []string, add func(object)) {
	text := must(os.ReadFile(filepath.Join("inputs", name+".yaml")))
	var cases []object
	check(yaml.Unmarshal(text, &cases))
	for _, c := range cases {
		add(c)
	}
	lines := [][]byte{}
	for _, c := range cases {
		lines = append(lines, encode(c))
	}
	origin := encode("recorded by tools/vectors from " + versionsOf(libraries))
	body := bytes.Join(lines, []byte(",\n"))
	whole := fmt.Sprintf("{\"origin\": %s,\n\"cases\": [\n%s\n]}\n", origin, body)
	check(os.WriteFile(filepath.Join(folder, name+".json"), []byte(whole), 0o644))
	fmt.Println(name, len(cases))
}

func versionsOf(libraries []string) string {
	info, _ := debug.ReadBuildInfo()
	told := ""
	for _, library := range libraries {
		for _, module := range info.Deps {
			if module.Path == library {
				if told != "" {
					told += ", "
				}
				told += module.Path + " " + module.Version
			}
		}
	}
	return told
}

func recordJSON(c object) {
	patch, err := jsonpatch.DecodePatch(encode(c["patch"]))
	if err == nil {
		var result []byte
		if result, err = patch.Apply(encode(c["live"])); err == nil {
			c["result"] = decode(result)
		}
	}
	tell(c, err)
}

func recordMerge(c object) {
	if _, threeWay := c["modified"]; threeWay {
		patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(
			encode(c["original"]), encode(c["modified"]), encode(c["current"]))
		if err == nil {
			c["patch"] = decode(patch)
			c["result"] = decode(must(jsonpatch.MergePatch(encode(c["current"]), patch)))
		}
		tell(c, err)
		return
	}
	result, err := jsonpatch.MergePatch(encode(c["live"]), encode(c["patch"]))
	if err == nil {
		c["result"] = decode(result)
	}
	tell(c, err)
}

func recordStrategic(c object) {
	defer func() {
		if r := recover(); r != nil {
			tell(c, fmt.Errorf("panic: %v", r))
		}
	}()
	kind := kinds[c["kind"].(string)]
	if _, threeWay := c["modified"]; threeWay {
		meta := must(strategicpatch.NewPatchMetaFromStruct(kind))
		patch, err := strategicpatch.CreateThreeWayMergePatch(
			encode(c["original"]), encode(c["modified"]), encode(c["current"]), meta, true)
		if err == nil {
			c["patch"] = decode(patch)
			var result []byte
			if result, err = strategicpatch.StrategicMergePatch(encode(c["current"]), patch, kind); err == nil {
				c["result"] = decode(result)
			}
		}
		tell(c, err)
		return
	}
	result, err := strategicpatch.StrategicMergePatch(encode(c["live"]), encode(c["patch"]), kind)
	if err == nil {
		c["result"] = decode(result)
	}
	tell(c, err)
}

// Nothing is converted and nothing defaulted: the object is what the managers say of it.
type asItIs struct{}

func (asItIs) Convert(in, out, context any) error { return nil }
func (asItIs) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}
func (asItIs) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}
func (asItIs) Default(runtime.Object) {}
func (asItIs) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	made := &unstructured.Unstructured{Object: object{}}
	made.SetGroupVersionKind(kind)
	return made, nil
}

func fieldManager(kind, subresource string) *managedfields.FieldManager {
	gvk := versions[kind]
	if kind == "Any" {
		return must(managedfields.NewDefaultCRDFieldManager(
			managedfields.NewDeducedTypeConverter(), asItIs{}, asItIs{}, asItIs{}, gvk, gvk.GroupVersion(), subresource, nil))
	}
	return must(managedfields.NewDefaultFieldManager(
		applyconfigurations.NewTypeConverter(scheme.Scheme), asItIs{}, asItIs{}, asItIs{}, gvk, gvk.GroupVersion(), subresource, nil))
}

func recordApply(c object) {
	kind := c["kind"].(string)
	empty := must(asItIs{}.New(versions[kind]))
	live := empty
	if given, ok := c["live"].(object); ok {
		live = &unstructured.Unstructured{Object: decode(encode(given)).(object)}
	}
	for _, step := range c["steps"].([]any) {
		step := step.(object)
		manager, _ := step["manager"].(string)
		subresource, _ := step["subresource"].(string)
		force, _ := step["force"].(bool)
		fields := fieldManager(kind, subresource)
		given := &unstructured.Unstructured{Object: decode(encode(step["object"])).(object)}
		before := live.DeepCopyObject()
		var after runtime.Object
		var err error
		if step["operation"] == "Apply" {
			after, err = fields.Apply(before, given, manager, force)
		} else {
			after, err = fields.Update(before, given, manager)
		}
		if err != nil {
			step["error"] = err.Error()
			if status, ok := err.(*apierrors.StatusError); ok && apierrors.IsConflict(err) {
				conflicts := []string{}
				for _, cause := range status.ErrStatus.Details.Causes {
					conflicts = append(conflicts, cause.Message+": "+cause.Field)
				}
				sort.Strings(conflicts)
				step["conflicts"] = conflicts
			}
			continue
		}
		live = after
		told := decode(encode(after)).(object)
		step["managed"] = managed(told)
		step["result"] = told
	}
}

// managed takes the entries out of an object, without their times, in an order of their own.
func managed(told object) []any {
	metadata, _ := told["metadata"].(object)
	entries, _ := metadata["managedFields"].([]any)
	delete(metadata, "managedFields")
	if len(metadata) == 0 {
		delete(told, "metadata")
	}
	for _, entry := range entries {
		delete(entry.(object), "time")
	}
	sort.Slice(entries, func(i, j int) bool { return name(entries[i]) < name(entries[j]) })
	if entries == nil {
		entries = []any{}
	}
	return entries
}

func name(entry any) string {
	e := entry.(object)
	return fmt.Sprint(e["operation"], "/", e["manager"], "/", e["apiVersion"], "/", e["subresource"])
}

func tell(c object, err error) {
	if err != nil {
		delete(c, "result")
		c["error"] = err.Error()
	}
}

func encode(value any) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	check(encoder.Encode(value))
	return bytes.TrimSpace(out.Bytes())
}

// decode keeps whole numbers whole, as the unstructured objects of Kubernetes do.
func decode(text []byte) any {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	check(decoder.Decode(&value))
	return whole(value)
}

func whole(value any) any {
	switch v := value.(type) {
	case object:
		for key := range v {
			v[key] = whole(v[key])
		}
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, _ := v.Float64()
		return f
	}
	return value
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
