package chat

// expr is an expression. pos returns its line.
type expr interface{ pos() int }

type line int

func (l line) pos() int { return int(l) }

type (
	literal struct {
		line
		v value
	}
	name struct {
		line
		name string
	}
	listExpr struct {
		line
		items []expr
	}
	dictExpr struct {
		line
		keys, values []expr
	}
	// attribute is x.name or x[key].
	attribute struct {
		line
		of  expr
		key expr
		dot bool
	}
	slice struct {
		line
		of              expr
		from, to, steps expr // nil if omitted
	}
	call struct {
		line
		fn   expr
		args callArgs
	}
	filter struct {
		line
		of   expr // nil in a filter block
		name string
		args callArgs
	}
	test struct {
		line
		of   expr
		name string
		not  bool
		args callArgs
	}
	unary struct {
		line
		op string
		x  expr
	}
	binary struct {
		line
		op   string
		x, y expr
	}
	conditional struct {
		line
		cond, yes, no expr // no is nil if there is no else
	}
)

type callArgs struct {
	pos   []expr
	names []string
	named []expr
}

// stmt is a statement.
type stmt interface{ pos() int }

type (
	data struct {
		line
		text string
	}
	output struct {
		line
		x expr
	}
	ifStmt struct {
		line
		conds  []expr
		bodies [][]stmt // has one more body than conds if there is an else
	}
	forStmt struct {
		line
		targets      []string
		over         expr
		only         expr // nil if there is no if
		body, orElse []stmt
	}
	setStmt struct {
		line
		targets []expr // names, or one attribute of a namespace
		x       expr   // nil in a block
		body    []stmt
		filters []*filter // filters of a block
	}
	macroStmt struct {
		line
		name     string
		params   []string
		defaults []expr // defaults of the last parameters
		body     []stmt
	}
	// callStmt calls a macro, which can output the body with caller().
	callStmt struct {
		line
		call *call
		body *macroStmt
	}
	filterStmt struct {
		line
		filters []*filter
		body    []stmt
	}
	withStmt struct {
		line
		sets []*setStmt
		body []stmt
	}
	jump struct {
		line
		brk bool // break if true, otherwise continue
	}
)
