#!/usr/bin/env node
/**
 * What the packages of the workspaces hold: of what `tsc -b` has compiled into `dist/<workspace>`,
 * the modules and types that the exports in `<workspace>/package.json` need, and nothing else. They
 * go into `<workspace>/dist`, without comments in code and without maps, whose sources are not
 * there; the types have the comments. The license goes beside them.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join, posix, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { minifySync } from "rolldown/utils"

const root = fileURLToPath(new URL("../../", import.meta.url))

const textOf = (path) => readFileSync(resolve(root, path), "utf8")

/** The package.json of a folder, absolute or of the project. */
export const manifestOf = (folder) => JSON.parse(textOf(join(folder, "package.json")))

/** The folders of the packages beside the service: `client`, `create`, `runtime`. */
export const workspaces = () => manifestOf(".").workspaces

/** A test may read the file meanwhile, so an unchanged one stays as it is. */
const write = (path, text) => {
  const whole = join(root, path)
  if (existsSync(whole) && readFileSync(whole, "utf8") === text) return
  mkdirSync(dirname(whole), { recursive: true })
  writeFileSync(whole, text)
}

/** The entries of a package, such as `.`, with the paths of their code and their types in it. */
export const entriesOf = (folder) =>
  Object.entries(manifestOf(folder).exports)
    .filter(([, target]) => typeof target === "object")
    .map(([name, { default: code, types }]) => ({ name, code, types }))

/** A compiled file names others with their `.js`; types may also name them as their source does. */
const importsIn = (path, text) =>
  [...text.matchAll(/\b(?:from|import)\s*\(?\s*"(\.[^"]+)\.[jt]s"/g)].map(([, target]) =>
    posix.join(posix.dirname(path), target) + (path.endsWith(".d.ts") ? ".d.ts" : ".js")
  )

/** These files below a folder, and those that they import, with their texts. */
const closureOf = (folder, entries) => {
  const texts = new Map()
  const add = (path) => {
    if (texts.has(path)) return
    const text = textOf(posix.join(folder, path))
    texts.set(path, text)
    for (const needed of importsIn(path, text)) add(needed)
  }
  for (const entry of entries) add(posix.normalize(entry))
  return texts
}

/** Code as it was written, but for its comments. */
const withoutComments = (path, text) => {
  const options = { compress: false, mangle: false, codegen: { removeWhitespace: false } }
  const { code, errors } = minifySync(path, text, { ...options, module: true })
  if (errors.length > 0) throw new Error(`${path}: ${errors.map(String).join("\n")}`)
  return code
}

const withoutMap = (text) => text.replace(/^\/\/# sourceMappingURL=.*\n?/m, "")

/** The compiler indents types by four spaces, which are a tenth of them. */
const withTabs = (text) => text.replace(/^(?: {4})+/gm, (spaces) => "\t".repeat(spaces.length / 4))

/** Types name the compiled files, too, which older compilers expect. */
const withCompiledNames = (text) =>
  text.replace(/\b(from|import)(\s*\(?\s*"\.[^"]+)\.ts"/g, "$1$2.js\"")

const packed = (path, text) =>
  path.endsWith(".d.ts")
    ? withTabs(withCompiledNames(withoutMap(text)))
    : withoutComments(path, withoutMap(text))

const filesIn = (folder) =>
  existsSync(join(root, folder))
    ? readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
    : []

const writePackage = (workspace) => {
  const out = posix.join(workspace, "dist")
  // `./dist/index.js` of the package is `dist/client/index.js` here.
  const compiled = (path) => posix.relative("dist", path)
  const targets = entriesOf(workspace).flatMap(({ code, types }) => [code, types].map(compiled))
  const texts = closureOf(posix.join("dist", workspace), targets)
  for (const [path, text] of texts) write(posix.join(out, path), packed(path, text))
  const wanted = new Set([...texts.keys()].map((path) => join(root, out, path)))
  for (const path of filesIn(out)) if (!wanted.has(path)) rmSync(path)
  write(posix.join(workspace, "LICENSE"), textOf("LICENSE"))
}

/** Writes the contents of each package from the compiled files. */
export const writePackages = () => {
  for (const workspace of workspaces()) writePackage(workspace)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writePackages()
