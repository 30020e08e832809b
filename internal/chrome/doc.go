// Package chrome drives headless Chromium in tests: it opens pages, clicks, types, reads
// what they hold and takes screenshots, through chromedp. It is
// empty without the build tag browser, which its tests have too, and on systems that are not Unix.
package chrome
