#!/usr/bin/env node
/**
 * The public API of a package, from the types that it holds: of each entry, every exported name
 * with its declaration, and the declarations that these use without exporting them. `npm run api`
 * writes `<workspace>/public-api.md`, and a test compares it: so a change of the API shows in the
 * change that makes it. `node deploy/generate/api/public-api.mjs <folder>` prints the report of
 * one.
 */
import { writeFileSync } from "node:fs"
import { isAbsolute } from "node:path"
import { inRoot } from "../../prepare.mjs"
import { exportsOf, idOf, readerOf, usedBy } from "./declarations.mjs"
import { entriesOf, manifestOf, workspaces } from "../packages.mjs"

const reportFile = "public-api.md"

const textOf = ({ module, name }) => module.locals.get(name).sources.join("\n")

const block = (lines) => lines.length === 0 ? "" : `\n\`\`\`ts\n${lines.join("\n")}\n\`\`\`\n`

/** The report of the package in a folder. */
const reportOf = (folder) => {
  const { name: packageName } = manifestOf(folder)
  const reader = readerOf(folder)
  const entries = exportsOf(folder, reader)
  const firstEntry = new Map()
  const parts = entries.map(({ exported, name }) => {
    const lines = exported.map(({ as, declaration }) => {
      if (declaration === undefined) return `${as} // of another package`
      const before = firstEntry.get(idOf(declaration))
      firstEntry.set(idOf(declaration), before ?? name)
      if (before !== undefined) return `${as} // as in ${before}`
      return as === declaration.name
        ? textOf(declaration)
        : `${textOf(declaration)} // exported as ${as}`
    })
    return `\n## ${name}\n${block(lines)}`
  })
  const declarations = entries.flatMap(({ exported }) =>
    exported.flatMap(({ declaration }) => declaration ?? [])
  )
  const used = usedBy(reader, declarations, new Set(declarations.map(idOf))).map(textOf)
  const head = `# The public API of ${packageName}\n\n` +
    "`npm run api` writes this file from the types of the package, and a test compares both.\n"
  return [head, ...parts, `\n## Not exported, and used by these\n${block(used)}`].join("")
}

const [folder] = process.argv.slice(2)
if (folder !== undefined) {
  process.stdout.write(reportOf(isAbsolute(folder) ? folder : inRoot(folder)))
} else {
  // A command has no API.
  for (const workspace of workspaces().filter((one) => entriesOf(one).length > 0)) {
    writeFileSync(inRoot(`${workspace}/${reportFile}`), reportOf(inRoot(workspace)))
  }
}
