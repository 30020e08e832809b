// Package ascii has functions of packages strings and strconv that treat only ASCII characters specially. Programs in
// pages become smaller by them, because the standard library's functions link tables of Unicode and of number formats.
package ascii

import "strings"

// Lower returns s with the letters A to Z in lower case.
func Lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// Space has the characters that separate words.
const Space = " \t\n\v\f\r"

// Trim returns s without the characters of cut, which are ASCII, at its start and end.
func Trim(s, cut string) string {
	for s != "" && strings.IndexByte(cut, s[0]) >= 0 {
		s = s[1:]
	}
	for s != "" && strings.IndexByte(cut, s[len(s)-1]) >= 0 {
		s = s[:len(s)-1]
	}
	return s
}

// Fields returns the words of s, which [Space] separates.
func Fields(s string) (words []string) {
	start := -1
	for i := range len(s) + 1 {
		switch space := i == len(s) || strings.IndexByte(Space, s[i]) >= 0; {
		case !space && start < 0:
			start = i
		case space && start >= 0:
			words, start = append(words, s[start:i]), -1
		}
	}
	return words
}

// Natural returns the number that s has in decimal digits, and false if s has other characters, no digits, or a number
// beyond nine digits.
func Natural(s string) (n int, ok bool) {
	if s == "" || len(s) > 9 {
		return 0, false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = 10*n + int(s[i]-'0')
	}
	return n, true
}
