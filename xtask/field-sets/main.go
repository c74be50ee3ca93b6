// Records what structured-merge-diff does in its own tests: every call of its main functions, with arguments and result.
//
// The module is copied, the functions are renamed, and wrappers from recorder/ take their places. Then its tests run. Each
// line of the output is one call; calls that are equal are written once. `cargo xtask field-sets` runs this program.
package main

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
)

// The functions that are recorded, by the file that defines them.
var recorded = map[string][]string{
	"typed/typed.go": {
		"func (tv TypedValue) Validate(",
		"func (tv TypedValue) ToFieldSet(",
		"func (tv TypedValue) Merge(",
		"func (tv TypedValue) Compare(",
		"func (tv TypedValue) RemoveItems(",
		"func (tv TypedValue) ExtractItems(",
	},
	"typed/reconcile_schema.go": {"func ReconcileFieldSetWithSchema("},
	"merge/update.go":           {"func (s *Updater) Update(", "func (s *Updater) Apply("},
	"fieldpath/element.go": {
		"func (e PathElement) Compare(",
		"func (e PathElement) Equals(",
		"func KeyByFields(",
	},
	"fieldpath/managers.go":     {"func (lhs ManagedFields) Equals("},
	"fieldpath/path.go":         {"func (fp Path) String("},
	"fieldpath/serialize.go":    {"func (s *Set) FromJSON(", "func (s *Set) ToJSON("},
	"fieldpath/serialize-pe.go": {"func SerializePathElement(", "func DeserializePathElement("},
	"fieldpath/set.go": {
		"func NewSet(",
		"func (s *Set) Insert(",
		"func (s *Set) Union(",
		"func (s *Set) Intersection(",
		"func (s *Set) Difference(",
		"func (s *Set) RecursiveDifference(",
		"func (s *Set) Leaves(",
		"func (s *Set) EnsureNamedFieldsAreMembers(",
		"func (s *Set) Size(",
		"func (s *Set) Empty(",
		"func (s *Set) Has(",
		"func (s *Set) Equals(",
		"func (s *Set) Iterate(",
	},
}

func main() {
	if len(os.Args) != 2 {
		fail(fmt.Errorf("usage: field-sets <output.jsonl.gz>"))
	}
	source, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/structured-merge-diff/v6").Output()
	fail(err)
	scratch, err := os.MkdirTemp("", "field-sets")
	fail(err)
	defer os.RemoveAll(scratch)
	copied := filepath.Join(scratch, "smd")
	run("", "cp", "-r", strings.TrimSpace(string(source)), copied)
	run("", "chmod", "-R", "u+w", copied)
	for file, functions := range recorded {
		path := filepath.Join(copied, file)
		text, err := os.ReadFile(path)
		fail(err)
		changed := string(text)
		for _, function := range functions {
			if !strings.Contains(changed, function) {
				fail(fmt.Errorf("%s has no %q", file, function))
			}
			name := strings.TrimSuffix(function, "(")
			at := strings.LastIndex(name, " ") + 1
			changed = strings.Replace(changed, function, name[:at]+"original"+name[at:]+"(", 1)
		}
		// Go visits maps in random order. The order of versions decides what is converted, so that it must be known.
		changed = strings.Replace(changed, "for version, managed := range managedAtVersion {",
			"for _, version := range sortedVersions(managedAtVersion) {\n\t\tmanaged := managedAtVersion[version]", 1)
		// The nodes below a set that is compared or counted are left out.
		for _, inner := range []string{"!s.members[i].set.Equals(", "!n.set.Empty(", "count += v.set.Size("} {
			at := strings.LastIndex(inner, ".") + 1
			changed = strings.Replace(changed, inner, inner[:at]+"original"+inner[at:], 1)
		}
		fail(os.WriteFile(path, []byte(changed), 0o644))
	}
	for _, name := range []string{"value", "fieldpath", "typed", "merge"} {
		text, err := os.ReadFile(filepath.Join("recorder", name+".go.txt"))
		fail(err)
		fail(os.WriteFile(filepath.Join(copied, name, "recorder.go"), text, 0o644))
	}
	lines := filepath.Join(scratch, "calls.jsonl")
	test := exec.Command("go", "test", "-count=1", "-p=1", "./fieldpath", "./typed", "./merge")
	test.Dir = copied
	// Random sets are the same each time.
	test.Env = append(os.Environ(), "FIELD_SETS="+lines, "GODEBUG=randautoseed=0")
	test.Stderr = os.Stderr
	out, err := test.Output()
	if err != nil {
		fmt.Println(string(out))
		fail(err)
	}
	write(lines, os.Args[1])
}

// Writes the lines in order, each once. Schemas come first, because calls refer to them.
func write(from, to string) {
	file, err := os.Open(from)
	fail(err)
	seen := map[string]bool{}
	var schemas, calls []string
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<26)
	for scanner.Scan() {
		line := scanner.Text()
		if seen[line] {
			continue
		}
		seen[line] = true
		if strings.HasPrefix(line, `{"kind":"schema"`) {
			schemas = append(schemas, line)
		} else {
			calls = append(calls, line)
		}
	}
	fail(scanner.Err())
	sort.Strings(schemas)
	sort.Strings(calls)
	out, err := os.Create(to)
	fail(err)
	zip, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	fail(err)
	for _, line := range append(schemas, calls...) {
		_, err := fmt.Fprintln(zip, line)
		fail(err)
	}
	fail(zip.Close())
	fail(out.Close())
	fmt.Printf("%s: %d schemas, %d calls\n", to, len(schemas), len(calls))
}

func run(dir, name string, args ...string) {
	command := exec.Command(name, args...)
	command.Dir = dir
	command.Stderr = os.Stderr
	fail(command.Run())
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
