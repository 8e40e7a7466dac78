/** What the tests ask of a browser, whichever it is, and what its pages report. */
import { existsSync } from "node:fs"
import { join } from "node:path"

/** Something that a page did, as the browser saw it. */
export interface Sighting {
  /** `ran`: a script of a deposit; `violation`: of the policy of the page; `dialog`: a prompt. */
  readonly kind: "ran" | "violation" | "dialog"
  readonly text: string
}

/** One tab, which loads one document after the other. */
export interface BrowserTab {
  /** Loads a document with its parts; also resolves if it is saved as a file, or refused. */
  readonly visit: (uri: string) => Promise<void>
  /** Brings the tab to the front: pages do less while they are hidden. */
  readonly show: () => Promise<void>
  /** The value of an expression in the document, or of its promise, which must be JSON. */
  readonly evaluate: (expression: string) => Promise<unknown>
  /** What the documents of this tab have done since the last call, in any of their frames. */
  readonly sightings: () => ReadonlyArray<Sighting>
}

export interface TestBrowser {
  readonly openTab: () => Promise<BrowserTab>
  readonly close: () => Promise<void>
}

/**
 * Runs in every document before its own scripts: `report` gets a text to the test. Scripts of
 * deposits call `ran`, so that no policy of a page can hide that they ran. It reports violations of
 * the policy of pages only: documents that are sandboxed may not even load the browser's icon.
 */
export const observer = `(report) => {
  globalThis.ran = (id) => report("ran " + id + " as " + location.origin + " in " + location.href)
  addEventListener("securitypolicyviolation", (event) => {
    const { blockedURI, documentURI, originalPolicy, violatedDirective } = event
    if (originalPolicy.startsWith("sandbox")) return
    report("violation " + [violatedDirective, blockedURI, documentURI, originalPolicy].join(" "))
  })
}`

/** What a document reported by the {@link observer}. */
export const sightingOf = (reported: string): Sighting => {
  const [kind, ...words] = reported.split(" ")
  return { kind: kind === "ran" ? "ran" : "violation", text: words.join(" ") }
}

/** A program on the path, or the one that a variable names; throws when there is none. */
export const executableOf = (variable: string, names: ReadonlyArray<string>): string => {
  const folders = (process.env["PATH"] ?? "").split(":")
  const found = [
    process.env[variable] ?? "",
    ...names.flatMap((name) => folders.map((folder) => join(folder, name)))
  ].find((path) => path !== "" && existsSync(path))
  if (found !== undefined) return found
  throw new Error(`${names[0]} is missing: install it, or set ${variable} to its executable`)
}
