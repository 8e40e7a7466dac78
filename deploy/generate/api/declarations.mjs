/**
 * The declarations of a package, from the types that it holds: of each entry the exported names,
 * and where each is declared, with its source and its comments. `public-api.mjs` and
 * `reference.mjs` write them down.
 */
import { readFileSync } from "node:fs"
import { join, posix } from "node:path"
import { parseSync } from "rolldown/utils"
import { entriesOf, manifestOf } from "../packages.mjs"

const isRelative = (source) => source.startsWith(".")

/** The nodes directly below a node of the syntax tree. */
const childrenOf = (node) =>
  Object.values(node).flat().filter((value) => typeof value?.type === "string")

/** What names something, and refers to nothing. */
const isName = (parent, child) =>
  parent.computed !== true &&
  (child === parent.key || child === parent.property || child === parent.right ||
    child === parent.label)

/** The names that a declaration refers to. */
const namesIn = (node) =>
  childrenOf(node).filter((child) => !isName(node, child)).flatMap((child) => {
    const isReference = child.type === "Identifier" && node.params?.includes(child) !== true
    return [...isReference ? [child.name] : [], ...namesIn(child)]
  })

const declaredNames = (node) =>
  node.type === "VariableDeclaration"
    ? node.declarations.map(({ id }) => id.name)
    : node.id === undefined || node.id === null
    ? []
    : [node.id.name ?? node.id.value]

/** The source of a declaration without comments and empty lines. */
const sourceOf = (text, comments, { end, start }) => {
  let at = start
  let source = ""
  for (const comment of comments.filter((one) => one.start >= start && one.end <= end)) {
    source += text.slice(at, comment.start)
    at = comment.end
  }
  return (source + text.slice(at, end)).split("\n").map((line) => line.trimEnd())
    .filter((line) => line !== "").join("\n").replace(/^(?:export )?(?:declare )?/, "")
}

/** The text of the comment for documentation that ends where a declaration begins; or undefined. */
const docOf = (text, comments, { start }) => {
  const isBefore = ({ end }) => end <= start && /^\s*(?:export\s+)?$/.test(text.slice(end, start))
  const comment = comments.findLast(isBefore)
  if (comment?.value.startsWith("*") !== true) return undefined
  return comment.value.slice(1).split("\n").map((line) => line.replace(/^\s*\* ?/, "").trimEnd())
    .join("\n").trim()
}

/** The declarations, imports and exports of one file of types. */
const moduleOf = (folder, path) => {
  const text = readFileSync(join(folder, path), "utf8")
  const { comments, errors, program } = parseSync(path, text, { lang: "dts", sourceType: "module" })
  if (errors.length > 0) throw new Error(`${path}: ${errors[0].message}`)
  const about = program.body[0] === undefined ? undefined : docOf(text, comments, program.body[0])
  const module = { path, about, locals: new Map(), imports: new Map(), exports: new Map(), all: [] }
  const from = ({ value }) =>
    isRelative(value)
      ? posix.join(posix.dirname(path), value).replace(/\.[jt]s$/, ".d.ts")
      : undefined
  const nameOf = (node) => node.name ?? node.value
  const declare = (node) => {
    for (const name of declaredNames(node)) {
      const before = module.locals.get(name)
      const names = [...before?.names ?? [], ...namesIn(node)]
      module.locals.set(name, {
        kind: before?.kind ?? node.type,
        doc: before?.doc ?? docOf(text, comments, node),
        sources: [...before?.sources ?? [], sourceOf(text, comments, node)],
        commented: [...before?.commented ?? [], text.slice(node.start, node.end)],
        names: names.filter((one) => one !== name)
      })
    }
  }
  for (const node of program.body) {
    if (node.type === "ImportDeclaration") {
      for (const { imported, local } of node.specifiers) {
        const name = imported === undefined ? "*" : nameOf(imported)
        module.imports.set(local.name, { from: from(node.source), name })
      }
    } else if (node.type === "ExportAllDeclaration") {
      if (node.exported !== null) throw new Error(`${path} exports a namespace`)
      module.all.push(from(node.source))
    } else if (node.type === "ExportNamedDeclaration" && node.declaration === null) {
      for (const { exported, local } of node.specifiers) {
        const target = node.source === null
          ? { local: nameOf(local) }
          : { from: from(node.source), name: nameOf(local), package: node.source.value }
        module.exports.set(nameOf(exported), target)
      }
    } else if (node.type === "ExportNamedDeclaration") {
      declare(node.declaration)
      for (const name of declaredNames(node.declaration)) module.exports.set(name, { local: name })
    } else declare(node)
  }
  return module
}

/** The modules of a package, each read once; and what their names mean. */
export const readerOf = (folder) => {
  const modules = new Map()
  const read = (path) => {
    if (!modules.has(path)) modules.set(path, moduleOf(folder, path))
    return modules.get(path)
  }
  /** The declaration of a name in the scope of a module; undefined when another package has it. */
  const resolveLocal = (module, name) => {
    if (module.locals.has(name)) return { module, name }
    const imported = module.imports.get(name)
    if (imported?.from === undefined || imported.name === "*") return undefined
    return resolveExport(read(imported.from), imported.name)
  }
  const resolveExport = (module, name) => {
    const target = module.exports.get(name)
    if (target === undefined) {
      return module.all.filter((path) => path !== undefined)
        .map((path) => resolveExport(read(path), name)).find((found) => found !== undefined)
    }
    if (target.local !== undefined) return resolveLocal(module, target.local)
    return target.from === undefined ? undefined : resolveExport(read(target.from), target.name)
  }
  const exportedNames = (module) => [
    ...module.exports.keys(),
    ...module.all.flatMap((path) => path === undefined ? [] : exportedNames(read(path)))
  ]
  return { read, resolveLocal, resolveExport, exportedNames }
}

export const idOf = ({ module, name }) => `${module.path} ${name}`

/** Sorted by code units, as every machine does. */
export const sorted = (list) => [...new Set(list)].sort()

/** The declarations that these use, and that are not among them, one after the other. */
export const usedBy = (reader, declarations, known) => {
  const found = new Map()
  const add = ({ module, name }) => {
    for (const used of module.locals.get(name).names) {
      const one = reader.resolveLocal(module, used)
      if (one === undefined || known.has(idOf(one)) || found.has(idOf(one))) continue
      found.set(idOf(one), one)
      add(one)
    }
  }
  declarations.forEach(add)
  return sorted(found.keys()).map((id) => found.get(id))
}

/**
 * The entries of the package in a folder, each with its exported names in order. A name of another
 * package has no declaration.
 */
export const exportsOf = (folder, reader) =>
  entriesOf(folder).map(({ name, types }) => {
    const module = reader.read(posix.normalize(types))
    const exported = sorted(reader.exportedNames(module)).map((as) => ({
      as,
      declaration: reader.resolveExport(module, as),
      package: module.exports.get(as)?.package
    }))
    return { name: posix.join(manifestOf(folder).name, name), about: module.about, exported }
  })
