// Package chrome drives headless Chromium in tests: it opens pages, clicks, types, reads
// what they hold and takes screenshots, through chromedp. It is
// empty on systems that are not Unix.
package chrome
