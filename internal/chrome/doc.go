// Package chrome drives headless Chromium in tests through chromedp: it opens pages, clicks, types,
// reads their contents and takes screenshots. It is empty without the build tag browser, which its
// tests also have, and on systems other than Unix.
package chrome
