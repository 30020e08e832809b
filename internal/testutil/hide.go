package testutil

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// Hide returns a command under which [AgainUnder] starts a process that finds none of
// the files: in its own view of the file system they are empty devices. The
// machine has to let it have one, which is called unshare, as [Need] says.
func Hide(t testing.TB, files ...string) []string {
	t.Helper()
	Need(t, "unshare")
	command, err := view()
	if err != nil {
		t.Fatal(err)
	}
	script := ""
	for _, f := range files {
		script += "mount --bind /dev/null '" + strings.ReplaceAll(f, "'", `'\''`) + "' && "
	}
	return append(command, "sh", "-c", script+`exec "$0" "$@"`)
}

// view returns a command under which programs have a view of the file system of
// their own, and may change it: as the superuser has it, or as anybody.
func view() ([]string, error) {
	if runtime.GOOS != "linux" {
		return nil, errors.New("only Linux has views of the file system")
	}
	f, err := os.CreateTemp("", "view")
	if err != nil {
		return nil, err
	}
	f.Close()
	defer os.Remove(f.Name())
	var said []byte
	for _, flags := range []string{"-m", "-rm"} {
		if said, err = exec.Command("unshare", flags, "mount", "--bind", "/dev/null", f.Name()).CombinedOutput(); err == nil {
			return []string{"unshare", flags}, nil
		}
	}
	return nil, fmt.Errorf("no leave to change its own view of the file system: %w: %s", err, strings.TrimSpace(string(said)))
}
