// Package devicehook lets the packages of this module reach what the types of package device
// hold. These are no exported methods, because their results are of internal types, which
// users cannot name. Package device sets the variables when it is initialised; each takes or
// returns, as any, the type of package device that its comment names.
package devicehook

import "github.com/rayo-go/rayo/internal/driver"

// NewPending returns a *device.Pending that is done when c is. explain completes its errors;
// nil leaves them as they are.
var NewPending func(c *driver.Completion, explain func(error) error) any
