/** The packages together: one version, one publication, one report of each public API. */
import { execFile } from "node:child_process"
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { dirname, join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { cleanUp, temporaryFolder } from "../e2e/process.ts"
import { listAt, root, textOf, treeAt, wordAt } from "./sources.ts"
import { run } from "./tools.ts"

const json = (path: string): unknown => JSON.parse(textOf(path))

const workspaces = listAt(json("package.json"), "workspaces").map(String)
const folders = [".", ...workspaces]
/** Those with an API: a command has none. */
const libraries = workspaces.filter((folder) =>
  Object.values(treeAt(json(`${folder}/package.json`), "exports"))
    .some((target) => typeof target === "object")
)

afterAll(cleanUp)

describe("the versions", () => {
  it("are the same", () => {
    const version = wordAt(json("package.json"), "version")
    for (const folder of workspaces) {
      expect([folder, wordAt(json(`${folder}/package.json`), "version")])
        .toEqual([folder, version])
      expect([folder, wordAt(json("package-lock.json"), "packages", folder, "version")])
        .toEqual([folder, version])
    }
    expect(wordAt(json("package-lock.json"), "version")).toBe(version)
  })

  it("of what the packages need include those that are tested", () => {
    const needed = workspaces.flatMap((folder) => {
      const { dependencies, peerDependencies } = Object(json(`${folder}/package.json`))
      return Object.entries({ ...dependencies, ...peerDependencies })
    })
    const tested = needed.map(([name, range]) => {
      const version = wordAt(
        json("package-lock.json"),
        "packages",
        `node_modules/${name}`,
        "version"
      )
      return [name, range, `${String(range).replace(/\d.*/, "")}${version}`]
    })
    expect(tested.length).toBeGreaterThan(5)
    expect(tested.filter(([, range, own]) => range !== own)).toEqual([])
  })
})

describe("the project of create-restante", () => {
  const root = json("package.json")
  const tools = json("create/template/package.json")

  it("has the compiler and the types that the packages are tested with", () => {
    for (const name of ["@types/node", "typescript"]) {
      expect(wordAt(tools, "devDependencies", name)).toBe(wordAt(root, "devDependencies", name))
    }
    expect(wordAt(tools, "engines", "node")).toBe(wordAt(root, "engines", "node"))
  })

  it("has what the runtime needs for each store", () => {
    const peers = Object.entries(treeAt(json("runtime/package.json"), "peerDependencies"))
      .filter(([name]) => name !== "@nxtedition/rocksdb")
    expect(peers.length).toBeGreaterThan(3)
    const creates = textOf("create/main.mjs")
    for (const [name, range] of peers) expect(creates).toContain(`"${name}": "${String(range)}"`)
  })
})

describe("npm publish", () => {
  /** A registry that has none of the packages yet. */
  const registry = createServer((_, response) => {
    response.writeHead(404, { "content-type": "application/json" }).end("{}")
  })
  let url = ""
  beforeAll(async () => {
    await new Promise<void>((resolve) => registry.listen(0, "127.0.0.1", resolve))
    const { port } = registry.address() as AddressInfo // a TCP server's address is an object
    url = `//127.0.0.1:${port}/`
  })
  afterAll(() => registry.close())

  it.each(folders)(
    "would publish the package of %s, and has nothing to correct",
    async (folder) => {
      const options = ["--dry-run", "--ignore-scripts", "--json", `--registry=http:${url}`]
      const args = ["publish", ...options, `--${url}:_authToken=none`]
      const published = await promisify(execFile)("npm", args, { cwd: join(root, folder) })
      expect(published.stderr).not.toMatch(/warn|error/i)
      const { name, version } = Object(json(join(folder, "package.json")))
      expect(published.stdout).toContain(`"${name}@${version}"`)
    }
  )
})

describe("the report of the public API", () => {
  const reportOf = (folder: string): string => {
    const generator = join(root, "deploy/generate/api/public-api.mjs")
    const { code, output } = run(process.execPath, [generator, folder])
    if (code !== 0) throw new Error(output)
    return output
  }

  it.each(libraries)("is that of %s: `npm run api` writes it", (folder) => {
    expect(textOf(`${folder}/public-api.md`)).toBe(reportOf(folder))
  })

  it("has a page of the reference for each entry of the runtime: `npm run api` writes them", () => {
    const folder = temporaryFolder()
    const generator = join(root, "deploy/generate/api/reference.mjs")
    const { code, output } = run(process.execPath, [generator, folder])
    expect(code, output).toBe(0)
    const pages = "docs/runtime/reference"
    expect(readdirSync(join(root, pages)).toSorted()).toEqual(readdirSync(folder).toSorted())
    for (const file of readdirSync(folder)) {
      expect(textOf(`${pages}/${file}`)).toBe(readFileSync(join(folder, file), "utf8"))
    }
  })

  it("has exported and used declarations, without comments and what is internal", () => {
    const folder = temporaryFolder()
    const files = {
      "package.json": `{ "name": "a", "exports": {
        ".": { "types": "./dist/index.d.ts", "default": "./dist/index.js" },
        "./b": { "types": "./dist/b.d.ts", "default": "./dist/b.js" } } }`,
      "dist/index.d.ts": `export { made, type Made as Thing } from "./b.js";
import type { Inner } from "./inner.js";
/** What it is. */
export interface Outer {
    /** A field. */
    readonly inner: Inner;
    readonly unused: string;
}
export declare const outer: (Hidden: Outer) => void;
`,
      "dist/b.d.ts": `export interface Made {}
export declare function made(): Made;
export declare function made(text: string): Made;
`,
      "dist/inner.d.ts": `export interface Inner { readonly of: "inner" }
interface Hidden {}
export declare const unused: Hidden;
`
    }
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true })
      writeFileSync(join(folder, name), text)
    }
    expect(reportOf(folder)).toBe(`# The public API of a

\`npm run api\` writes this file from the types of the package, and a test compares both.

## a

\`\`\`ts
interface Outer {
    readonly inner: Inner;
    readonly unused: string;
}
interface Made {} // exported as Thing
function made(): Made;
function made(text: string): Made;
const outer: (Hidden: Outer) => void;
\`\`\`

## a/b

\`\`\`ts
Made // as in a
made // as in a
\`\`\`

## Not exported, and used by these

\`\`\`ts
interface Inner { readonly of: "inner" }
\`\`\`
`)
  })
})
