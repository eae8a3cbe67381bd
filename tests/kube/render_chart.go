// SPDX-License-Identifier: Apache-2.0

// render_chart CHART NAMESPACE [VALUES...]: what `helm template --namespace NAMESPACE --values VALUES` makes of a chart, by
// the rules of Helm's chart template guide: Go's text/template with Sprig's functions, include, toYaml, fromYaml and
// required, over .Values, .Chart, .Release and .Files. Subcharts, hooks, lookup and tpl are not supported.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

type chart struct{ Name, Version, AppVersion string }

type files string

func (folder files) Get(name string) (string, error) {
	data, err := os.ReadFile(filepath.Join(string(folder), name))
	return string(data), err
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "render_chart:", err)
		os.Exit(1)
	}
}

func read(path string, into interface{}) {
	data, err := os.ReadFile(path)
	check(err)
	check(yaml.UnmarshalStrict(data, into))
}

// Maps are merged key by key, everything else is replaced, and null removes a key.
func merge(into, from map[string]interface{}) {
	for key, value := range from {
		below, isMap := value.(map[string]interface{})
		old, wasMap := into[key].(map[string]interface{})
		switch {
		case value == nil:
			delete(into, key)
		case isMap && wasMap:
			merge(old, below)
		default:
			into[key] = value
		}
	}
}

func functions(all *template.Template) template.FuncMap {
	known := sprig.TxtFuncMap()
	delete(known, "env") // as in Helm
	delete(known, "expandenv")
	known["include"] = func(name string, data interface{}) (string, error) {
		var text strings.Builder
		err := all.ExecuteTemplate(&text, name, data)
		return text.String(), err
	}
	known["toYaml"] = func(value interface{}) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	known["fromYaml"] = func(text string) (map[string]interface{}, error) {
		value := map[string]interface{}{}
		return value, yaml.Unmarshal([]byte(text), &value)
	}
	known["required"] = func(message string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return value, errors.New(message)
		}
		return value, nil
	}
	return known
}

func main() {
	if len(os.Args) < 3 {
		check(errors.New("usage: render_chart CHART NAMESPACE [VALUES...]"))
	}
	folder, namespace := os.Args[1], os.Args[2]
	about := map[string]interface{}{}
	read(filepath.Join(folder, "Chart.yaml"), &about)
	values := map[string]interface{}{}
	read(filepath.Join(folder, "values.yaml"), &values)
	for _, path := range os.Args[3:] {
		more := map[string]interface{}{}
		read(path, &more)
		merge(values, more)
	}
	all := template.New("chart").Option("missingkey=zero")
	all.Funcs(functions(all))
	paths, err := filepath.Glob(filepath.Join(folder, "templates", "*"))
	check(err)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		check(err)
		_, err = all.New(path).Parse(string(text))
		check(err)
	}
	text := func(key string) string { return fmt.Sprint(about[key]) }
	data := map[string]interface{}{
		"Values": values, "Files": files(folder),
		"Chart":   chart{text("name"), text("version"), text("appVersion")},
		"Release": map[string]interface{}{"Name": "headroom", "Namespace": namespace, "Service": "Helm"}}
	for _, path := range paths {
		if !strings.HasSuffix(path, ".yaml") {
			continue
		}
		var out strings.Builder
		check(all.ExecuteTemplate(&out, path, data))
		if rendered := strings.ReplaceAll(out.String(), "<no value>", ""); strings.TrimSpace(rendered) != "" {
			fmt.Printf("---\n# Source: %s\n%s\n", filepath.Base(path), rendered)
		}
	}
}
