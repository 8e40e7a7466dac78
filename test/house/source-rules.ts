/**
 * The rules of the source tree that no linter knows. Each rule takes the tree as text, so that the
 * test can plant a violation, and returns one line for each violation that it finds.
 */
import { basename, dirname, join } from "node:path"

/** Path from the project's root -> text. */
export type SourceTree = ReadonlyMap<string, string>

const filesPerModuleMax = 12
const columnsMax = 100
const linesMax = 800

/** `create/` has the files of other projects, which are no modules of this one. */
const isSource = (file: string): boolean =>
  file.endsWith(".ts") && file.includes("/") && !/^(test|create)\//.test(file)

const sourcesOf = (tree: SourceTree): ReadonlyArray<readonly [file: string, text: string]> =>
  [...tree].filter(([file]) => isSource(file))

/** The file that each relative import and re-export of a file names. */
const importsOf = (file: string, text: string): ReadonlyArray<string> =>
  [...text.matchAll(/(?:^|[\s}])(?:from|import)\s*\(?\s*"(\.[^"]+)"/g)]
    .flatMap(([, target]) => target === undefined ? [] : [join(dirname(file), target)])

/**
 * Packages within the project: whoever is outside imports their one `index.ts`, never that of a
 * module within.
 */
const packages = [
  "client",
  "http",
  "runtime/embedded",
  "runtime/http",
  "runtime/memory",
  "runtime/nats",
  "runtime/testing",
  "runtime"
]

const isWithin = (file: string, folder: string): boolean => file.startsWith(`${folder}/`)

/** Imports of a module's file, other than its `index.ts`, from outside the module. */
export const importsPastIndex = (tree: SourceTree): ReadonlyArray<string> =>
  sourcesOf(tree).flatMap(([file, text]) =>
    importsOf(file, text).filter((target) => {
      if (!isSource(target) || isWithin(file, dirname(target))) return false
      const inside = packages.find((name) => isWithin(target, name) && !isWithin(file, name))
      return inside === undefined
        ? basename(target) !== "index.ts"
        : target !== `${inside}/index.ts`
    }).map((target) => `${file} imports ${target} past its index.ts`)
  )

/** Modules without `index.ts`, and modules of too many files. */
export const moduleShapes = (tree: SourceTree): ReadonlyArray<string> => {
  const folders = new Map<string, number>()
  for (const [file] of sourcesOf(tree)) {
    const counted = basename(file) === "index.ts" ? 0 : 1
    folders.set(dirname(file), (folders.get(dirname(file)) ?? 0) + counted)
  }
  return [...folders].flatMap(([folder, count]) => [
    ...(count > filesPerModuleMax
      ? [`${folder} has ${count} files; a module has ${filesPerModuleMax} at most`]
      : []),
    // The program itself is imported by nobody.
    ...(tree.has(`${folder}/index.ts`) || folder === "deploy" ? [] : [`${folder} has no index.ts`])
  ])
}

/** Names of exported types that are declared more than once in the project. */
export const repeatedTypeNames = (tree: SourceTree): ReadonlyArray<string> => {
  const files = new Map<string, Array<string>>()
  for (const [file, text] of sourcesOf(tree)) {
    for (
      const [, name] of text.matchAll(/^export (?:abstract )?(?:interface|type|class) (\w+)/gm)
    ) {
      if (name !== undefined) files.set(name, [...(files.get(name) ?? []), file])
    }
  }
  return [...files].filter(([, all]) => all.length > 1)
    .map(([name, all]) => `${name} is declared in ${all.join(" and ")}`)
}

/**
 * Module-level mutable state: variables, and collections that are filled later. A collection that
 * is made with its content is a table. A WeakMap that remembers what a pure function made of an
 * object is no state: nothing changes with it.
 */
export const moduleState = (tree: SourceTree): ReadonlyArray<string> => {
  const variable = /^(?:export )?(?:let|var) /
  const collection = /^(?:export )?const \w+(?:: [^=]+)? = new (?:Map|Set)\b[^(]*\(\)/
  return sourcesOf(tree).flatMap(([file, text]) =>
    text.split("\n").flatMap((line, at) =>
      variable.test(line) || collection.test(line)
        ? [`${file}:${at + 1} keeps state at module level: ${line}`]
        : []
    )
  )
}

/** Bounds stand in one `limits.ts` for each top-level folder. */
export const scatteredLimits = (tree: SourceTree): ReadonlyArray<string> =>
  sourcesOf(tree).map(([file]) => file)
    .filter((file) => /(^|[/-])limits\.ts$/.test(file) && !/^\w+\/limits\.ts$/.test(file))
    .map((file) => `${file}: the bounds of a top-level folder stand in its limits.ts`)

/** Lines that are too wide, and files that are too long. */
export const sizes = (tree: SourceTree): ReadonlyArray<string> =>
  [...tree].filter(([file]) => /\.(ts|mjs)$/.test(file)).flatMap(([file, text]) => {
    const lines = text.trimEnd().split("\n")
    return [
      ...(lines.length > linesMax ? [`${file} has ${lines.length} lines`] : []),
      ...lines.flatMap((line, at) =>
        line.length > columnsMax ? [`${file}:${at + 1} has ${line.length} columns`] : []
      )
    ]
  })

/**
 * Words that only this project used, and words of prose that slow a reader down; the glossary has
 * the term for each (docs/glossary.md).
 */
export const retiredWords = (tree: SourceTree, words: RegExp): ReadonlyArray<string> =>
  [...tree].flatMap(([file, text]) =>
    text.split("\n").flatMap((line, at) => {
      const found = words.exec(line)
      return found === null ? [] : [`${file}:${at + 1} says "${found[0]}"`]
    })
  )
