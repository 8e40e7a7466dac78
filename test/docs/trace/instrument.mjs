/** A loader of modules: each named function of the compiled project records that it is called. */
import { fileURLToPath } from "node:url"
import { parseAst } from "rolldown/parseAst"

const dist = fileURLToPath(new URL("../../../dist/", import.meta.url))

const functions = new Set(["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"])

const nameOfKey = (key) => key?.name ?? (typeof key?.value === "string" ? key.value : undefined)

/** The name that a node gives to a function in it, or the one that it inherits. */
const nameFrom = (node, inherited, className) => {
  switch (node.type) {
    case "VariableDeclarator":
      return nameOfKey(node.id)
    case "Property":
    case "PropertyDefinition":
    case "MethodDefinition": {
      const name = nameOfKey(node.key)
      return className === undefined || name === undefined ? name : `${className}.${name}`
    }
    case "CallExpression":
    case "ParenthesizedExpression":
    case "AwaitExpression":
      return inherited
    default:
      return undefined
  }
}

/** Where to insert a call of the recorder, and which: at the beginning of each function's body. */
const insertions = (program, path) => {
  const found = []
  const visit = (node, inherited, className) => {
    if (node === null || typeof node !== "object") return
    if (Array.isArray(node)) {
      for (const one of node) visit(one, inherited, className)
      return
    }
    if (typeof node.type !== "string") return
    if (functions.has(node.type)) {
      const name = node.id?.name ?? inherited
      // The embedded store's writing thread runs functions by their text: it has no recorder.
      const call = `globalThis.recordCall?.(${JSON.stringify(`${path} ${name}\n`)})`
      if (name !== undefined && node.body.type === "BlockStatement") {
        const first = node.body.body[0]
        const at = first?.directive === undefined ? node.body.start + 1 : first.end
        found.push({ at, text: `;${call};` })
      } else if (name !== undefined) {
        found.push({ at: node.body.start, text: `(${call},(` }, { at: node.body.end, text: "))" })
      }
      visit(node.params, undefined, undefined)
      visit(node.body, undefined, undefined)
      return
    }
    const isClass = node.type === "ClassDeclaration" || node.type === "ClassExpression"
    const inside = isClass ? node.id?.name ?? inherited : className
    const name = nameFrom(node, inherited, isClass ? inside : className)
    for (const [key, value] of Object.entries(node)) {
      if (key !== "type") {
        visit(value, name, isClass || node.type === "ClassBody" ? inside : undefined)
      }
    }
  }
  visit(program, undefined, undefined)
  return found
}

const instrumented = (source, path) => {
  const sorted = insertions(parseAst(source), path).sort((a, b) => a.at - b.at)
  let at = 0
  let text = ""
  for (const one of sorted) {
    text += source.slice(at, one.at) + one.text
    at = one.at
  }
  return text + source.slice(at)
}

export const load = async (url, context, nextLoad) => {
  const loaded = await nextLoad(url, context)
  if (!url.startsWith("file:")) return loaded
  const path = fileURLToPath(url)
  if (!path.startsWith(dist) || path.startsWith(`${dist}bin/`)) return loaded
  const file = path.slice(dist.length).replace(/\.js$/, ".ts")
  return { ...loaded, source: instrumented(String(loaded.source), file) }
}
