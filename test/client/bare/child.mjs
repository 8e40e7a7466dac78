// Runs the scenario with only JavaScript and the web's globals: no process, Buffer or require, and
// no module but the client's own. Node needs --experimental-vm-modules.
import { readFileSync } from "node:fs"
import { createContext, SourceTextModule } from "node:vm"

const [url, publicUrl, token] = process.argv.slice(2)
const names = [
  "AbortController",
  "AbortSignal",
  "atob",
  "Blob",
  "btoa",
  "clearTimeout",
  "crypto",
  "fetch",
  "Headers",
  "ReadableStream",
  "Request",
  "Response",
  "setTimeout",
  "TextDecoder",
  "TextEncoder",
  "URL",
  "URLSearchParams"
]
const context = createContext({
  ...Object.fromEntries(names.map((name) => [name, globalThis[name]])),
  options: { url, publicUrl, account: "admin", token },
  report: (text) => process.stdout.write(text)
})

const built = new URL("../../../client/dist/", import.meta.url)
const modules = new Map()
const moduleAt = (at) => {
  const loaded = modules.get(at.href)
  if (loaded !== undefined) return loaded
  const made = new SourceTextModule(readFileSync(at, "utf8"), { context, identifier: at.href })
  modules.set(at.href, made)
  return made
}

const main = moduleAt(new URL("scenario.mjs", import.meta.url))
await main.link((specifier, importer) => {
  if (specifier === "@restante/client") return moduleAt(new URL("index.js", built))
  const at = new URL(specifier, importer.identifier)
  if (!/^\.\.?\/[a-z./-]+\.js$/.test(specifier) || !at.href.startsWith(built.href)) {
    throw new Error(`the client imports ${specifier}`)
  }
  return moduleAt(at)
})
await main.evaluate()
