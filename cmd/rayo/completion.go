package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/rayo-go/rayo/op"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: bash, zsh or fish."`
}

// Help returns the end of the text of rayo completion --help.
func (*completionCmd) Help() string {
	return `These lines of the shells' files load it:

	bash   source <(rayo completion bash)    in ~/.bashrc
	zsh    source <(rayo completion zsh)     in ~/.zshrc, after compinit
	fish   rayo completion fish | source     in config.fish`
}

// word is a possible next word of a command line, and its meaning.
type word struct{ text, help string }

// place is a command and the words that may follow it.
type place struct {
	path  string // the command, for example "ptx show"; "" before the first command
	words []word
}

// places returns the commands and the words that may follow each, from the table of commands.
func places(n *kong.Node, path string) []place {
	p := place{path: path}
	var deeper []place
	for _, child := range n.Children {
		if child.Hidden {
			continue
		}
		p.words = append(p.words, word{child.Name, child.Help})
		deeper = append(deeper, places(child, strings.TrimSpace(path+" "+child.Name))...)
	}
	for _, v := range n.Positional {
		for _, e := range v.EnumSlice() {
			if e != "" { // an argument without an enumeration has one value: the empty string
				p.words = append(p.words, word{e, ""})
			}
		}
	}
	if path == "ops" {
		for _, o := range op.Catalogue() {
			p.words = append(p.words, word{o.Name(), ""})
		}
	}
	for _, f := range n.Flags {
		if !f.Hidden {
			p.words = append(p.words, word{"--" + f.Name, f.Help})
		}
	}
	if len(n.Flags) == 0 || !slices.ContainsFunc(n.Flags, func(f *kong.Flag) bool { return f.Name == "help" }) {
		p.words = append(p.words, word{"--help", "Show context-sensitive help."})
	}
	return append([]place{p}, deeper...)
}

func (c *completionCmd) Run(a *app) error {
	write := map[string]func([]place) string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}[c.Shell]
	_, err := fmt.Fprint(a.out, write(places(a.commands, "")))
	return err
}

// texts returns the words without their meanings.
func (p *place) texts() string {
	var s []string
	for _, w := range p.words {
		s = append(s, w.text)
	}
	return strings.Join(s, " ")
}

// commandsOf returns the part of a shell script that finds the command on the line: the words before the
// cursor that are commands.
func commandsOf(ps []place) string {
	var paths []string
	for _, p := range ps[1:] {
		paths = append(paths, "'"+p.path+"'")
	}
	return strings.Join(paths, "|")
}

func bashCompletion(ps []place) string {
	var b strings.Builder
	b.WriteString("# Completion of rayo for bash, made by rayo completion bash.\n_rayo() {\n\tlocal path= word words i\n")
	fmt.Fprintf(&b, "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n\t\tword=\"${path:+$path }${COMP_WORDS[i]}\"\n\t\tcase \"$word\" in %s) path=$word ;; esac\n\tdone\n\tcase \"$path\" in\n", commandsOf(ps))
	for _, p := range ps {
		fmt.Fprintf(&b, "\t'%s') words='%s' ;;\n", p.path, p.texts())
	}
	b.WriteString("\tesac\n\tCOMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n}\ncomplete -o default -F _rayo rayo\n")
	return b.String()
}

func zshCompletion(ps []place) string {
	var b strings.Builder
	b.WriteString("#compdef rayo\n# Completion of rayo for zsh, made by rayo completion zsh.\n_rayo() {\n\tlocal path_= word i\n\tlocal -a found\n")
	fmt.Fprintf(&b, "\tfor ((i = 2; i < CURRENT; i++)); do\n\t\tword=\"${path_:+$path_ }${words[i]}\"\n\t\tcase \"$word\" in (%s) path_=$word ;; esac\n\tdone\n\tcase \"$path_\" in\n", commandsOf(ps))
	for _, p := range ps {
		fmt.Fprintf(&b, "\t('%s') found=(", p.path)
		for _, w := range p.words {
			fmt.Fprintf(&b, " '%s'", strings.ReplaceAll(quoted(strings.ReplaceAll(w.text, ":", `\:`)+":"+w.help), "\n", " "))
		}
		b.WriteString(" ) ;;\n")
	}
	b.WriteString("\tesac\n\t_describe rayo found || _files\n}\ncompdef _rayo rayo\n")
	return b.String()
}

// quoted escapes s for a string in single quotes of a shell.
func quoted(s string) string { return strings.ReplaceAll(s, "'", `'\''`) }

func fishCompletion(ps []place) string {
	var b strings.Builder
	b.WriteString("# Completion of rayo for fish, made by rayo completion fish.\nfunction __rayo_at\n\tset -l path ''\n\tfor word in (commandline -opc)[2..-1]\n")
	fmt.Fprintf(&b, "\t\tset -l next (string trim -- \"$path $word\")\n\t\tcontains -- \"$next\" %s; and set path $next\n\tend\n\ttest \"$path\" = \"$argv[1]\"\nend\n", strings.ReplaceAll(commandsOf(ps), "|", " "))
	for _, p := range ps {
		for _, w := range p.words {
			kind, text := "-a", w.text
			if name, isFlag := strings.CutPrefix(text, "--"); isFlag {
				kind, text = "-l", name
			}
			fmt.Fprintf(&b, "complete -c rayo -n \"__rayo_at '%s'\" %s %s", p.path, kind, text)
			if w.help != "" {
				fmt.Fprintf(&b, " -d '%s'", strings.NewReplacer(`\`, `\\`, "'", `\'`, "\n", " ").Replace(w.help))
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}
