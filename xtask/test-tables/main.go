// Records what Kubernetes' code does in its own tests: every call of some functions, with arguments and result.
//
// The modules are copied, the functions are renamed, and wrappers from recorder/ take their places. Then the tests of the packages
// run. Each line of the output is one call; calls that are equal are written once.
// `cargo xtask rbac-tables` and `cargo xtask cel-tables` run this program.
package main

import (
	"compress/gzip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
)

type recorded struct {
	// set is the name by which the functions are chosen.
	set         string
	packagePath string
	file        string
	functions   []string
	recorder    string
}

var all = []recorded{
	{"rbac", "k8s.io/component-helpers/auth/rbac/validation", "policy_comparator.go", []string{"func Covers("}, "covers"},
	{"rbac", "k8s.io/kubernetes/pkg/registry/rbac/validation", "rule.go", []string{"func (r *DefaultRuleResolver) RulesFor("}, "rules"},
	{"rbac", "k8s.io/kubernetes/pkg/registry/rbac/validation", "policy_compact.go", []string{"func CompactRules("}, "compact"},
	{"rbac", "k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac", "rbac.go", []string{
		"func (r *RBACAuthorizer) Authorize(", "func RuleAllows(",
	}, "authorize"},
	{"cel", "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel", "validation.go", []string{
		"func (s *Validator) Validate(",
	}, "validate"},
	{"cel", "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel", "validation.go", nil, "schema"},
	{"cel-estimates", "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel", "compilation.go", []string{
		"func Compile(",
	}, "compile"},
	{"cel-estimates", "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel", "compilation.go", nil, "schema"},
	{"cel-estimates", "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel", "compilation.go", nil, "more_test"},
	{"cel-estimates", "github.com/google/cel-go/cel", "env.go", []string{"func (e *Env) EstimateCost("}, "estimate"},
	{"cel-libraries", "github.com/google/cel-go/cel", "env.go", []string{
		"func (e *Env) Compile(", "func (e *Env) Program(", "func (e *Env) EstimateCost(",
	}, "evaluate"},
	{"cel-libraries", "github.com/google/cel-go/cel", "program.go", []string{"func (p *prog) Eval("}, "evaluate"},
	{"cel-libraries", "k8s.io/apiserver/pkg/cel/library", "authz.go", []string{"func newDecision("}, "decide"},
}

// modules are the modules of the packages, by set.
var modules = map[string][]string{
	"rbac": {"k8s.io/component-helpers", "k8s.io/kubernetes"},
	"cel":  {"k8s.io/apiextensions-apiserver"},

	"cel-estimates": {"github.com/google/cel-go", "k8s.io/apiextensions-apiserver"},
	"cel-libraries": {"github.com/google/cel-go", "k8s.io/apiserver"},
}

// tests are the packages whose tests run, by set, if they are others than those of the functions.
var tests = map[string][]string{
	"cel-estimates": {"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel", "k8s.io/apiserver/pkg/cel/library"},
	"cel-libraries": {
		"k8s.io/apiserver/pkg/cel/...", "k8s.io/apiserver/pkg/admission/plugin/cel",
		"k8s.io/apiserver/pkg/admission/plugin/policy/...", "k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions",
	},
}

func main() {
	if len(os.Args) != 4 {
		fail(fmt.Errorf("usage: test-tables <rbac, cel, cel-estimates or cel-libraries> <folder of the API server's module> <output.jsonl.gz>"))
	}
	set := os.Args[1]
	scratch, err := os.MkdirTemp("", "test-tables")
	fail(err)
	defer os.RemoveAll(scratch)
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(os.Args[2], name))
		fail(err)
		fail(os.WriteFile(filepath.Join(scratch, name), text, 0o644))
	}
	packages := map[string]bool{}
	for _, module := range modules[set] {
		// Files in the module cache cannot be replaced.
		source := strings.TrimSpace(string(output(scratch, "go", "list", "-mod=mod", "-m", "-f", "{{.Dir}}", module)))
		copied := filepath.Join(scratch, filepath.Base(module))
		output("", "cp", "-r", source, copied)
		output("", "chmod", "-R", "u+w", copied)
		output(scratch, "go", "mod", "edit", "-replace", module+"="+copied)
	}
	for _, one := range all {
		if one.set != set {
			continue
		}
		packages[one.packagePath] = true
		folder := filepath.Join(scratch, within(one.packagePath, modules[set]))
		source := filepath.Join(folder, one.file)
		text, err := os.ReadFile(source)
		fail(err)
		changed := string(text)
		for _, function := range one.functions {
			if !strings.Contains(changed, function) {
				fail(fmt.Errorf("%s has no %q", one.file, function))
			}
			name := strings.TrimSuffix(function, "(")
			at := strings.LastIndex(name, " ") + 1
			changed = strings.Replace(changed, function, name[:at]+"original"+name[at:]+"(", 1)
		}
		fail(os.WriteFile(source, []byte(changed), 0o644))
		wrapper, err := os.ReadFile(filepath.Join("recorder", one.recorder+".go.txt"))
		fail(err)
		fail(os.WriteFile(filepath.Join(folder, "recorder_"+one.recorder+".go"), wrapper, 0o644))
	}
	lines := filepath.Join(scratch, "calls.jsonl")
	arguments := []string{"test", "-mod=mod", "-count=1", "-p=1", "-parallel=1"}
	for name := range packages {
		if tests[set] == nil {
			arguments = append(arguments, name)
		}
	}
	arguments = append(arguments, tests[set]...)
	test := exec.Command("go", arguments...)
	test.Dir = scratch
	test.Env = append(os.Environ(), "TEST_TABLES="+lines)
	test.Stdout, test.Stderr = os.Stdout, os.Stderr
	fail(test.Run())
	write(lines, os.Args[3])
}

// within returns the folder of a package, from the folder that has the copies of modules.
func within(packagePath string, modules []string) string {
	for _, module := range modules {
		if rest, ok := strings.CutPrefix(packagePath, module+"/"); ok {
			return filepath.Join(filepath.Base(module), rest)
		}
	}
	panic(packagePath)
}

// write sorts the calls, and compresses each once.
func write(from, to string) {
	text, err := os.ReadFile(from)
	fail(err)
	seen := map[string]bool{}
	calls := []string{}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if !seen[line] {
			seen[line] = true
			calls = append(calls, line)
		}
	}
	sort.Strings(calls)
	file, err := os.Create(to)
	fail(err)
	compressed, err := gzip.NewWriterLevel(file, gzip.BestCompression)
	fail(err)
	_, err = compressed.Write([]byte(strings.Join(calls, "\n") + "\n"))
	fail(err)
	fail(compressed.Close())
	fail(file.Close())
	fmt.Printf("%s: %d calls\n", to, len(calls))
}

func output(folder, name string, arguments ...string) []byte {
	command := exec.Command(name, arguments...)
	command.Dir = folder
	command.Stderr = os.Stderr
	out, err := command.Output()
	fail(err)
	return out
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
