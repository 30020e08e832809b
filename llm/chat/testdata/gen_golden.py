"""Writes golden.json: what Jinja 3.1.6 makes of the templates here and of short ones, with the
settings of Hugging Face's transformers. Run it in this folder: python3 gen_golden.py"""
import datetime, json, pathlib
import jinja2, jinja2.ext, jinja2.nodes, jinja2.sandbox


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


env = jinja2.sandbox.ImmutableSandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
env.filters["tojson"] = tojson
env.globals["raise_exception"] = raise_exception
env.globals["strftime_now"] = lambda f: datetime.datetime(2026, 3, 9, 14, 5, 7).strftime(f)

tool = {"type": "function", "function": {"name": "weather", "description": "Says how the weather is.", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer", "enum": [1, 2]},
                                     "at": {"type": "array", "items": {"type": "number"}}}, "required": ["city"]}}}
call = {"type": "function", "id": "call_123", "function": {"name": "weather", "arguments": {"city": "Köln \"am Rhein\"", "days": 2, "at": [50.9, 7.0, 1e20]}}}
system = {"role": "system", "content": " Be brief. "}
user, answer = {"role": "user", "content": " Hi <there> "}, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nHello!\n"}
conversations = {
    "one": {"messages": [user], "add_generation_prompt": True},
    "system": {"messages": [system, user, answer, {"role": "user", "content": "Bye"}], "add_generation_prompt": True},
    "answered": {"messages": [user, answer], "add_generation_prompt": False},
    "nothink": {"messages": [user], "add_generation_prompt": True, "enable_thinking": False},
    "tools": {"messages": [system, user, {"role": "assistant", "content": "", "tool_calls": [call]},
                           {"role": "tool", "content": "sunny", "tool_call_id": "call_123", "name": "weather"}],
              "tools": [tool, tool], "add_generation_prompt": True},
    "refused": {"messages": [answer, answer], "add_generation_prompt": True},
}
data = {"n": 7, "x": 2.5, "s": "héllo Wörld", "l": [3, 1, 2, 1], "d": {"b": 1, "a": {"c": [1, None, True, 1.0, "q'"]}}, "none": None, "t": True,
        "people": [{"name": "Bo", "age": 3, "ok": True}, {"name": "al", "age": 9}, {"name": "Cy", "age": 5, "ok": False}], "html": "<a href='x'>&</a>"}
snippets = (pathlib.Path("snippets.txt").read_text().rstrip("\n").split("\n---\n"))


def render(source, values):
    try:
        return {"output": env.from_string(source).render(**values)}
    except Exception as e:
        return {"error": type(e).__name__}


golden = {"data": data, "snippets": [], "conversations": [], "templates": []}
for s in snippets:
    golden["snippets"].append({"template": s, **render(s, data)})
for name, c in conversations.items():
    golden["conversations"].append({"name": name, **c})
for path in sorted(pathlib.Path(".").glob("*.jinja")):
    for name, c in conversations.items():
        golden["templates"].append({"template": path.name, "conversation": name, **render(path.read_text(), {"bos_token": "<bos>", "eos_token": "<eos>", **c})})
pathlib.Path("golden.json").write_text(json.dumps(golden, ensure_ascii=False, indent=1) + "\n")
