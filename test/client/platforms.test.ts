/** The package of the client without Node: with the web's globals only, and in a browser. */
import { execFile } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, expect, it } from "vitest"
import { launchBrowser, openTab } from "../e2e/browser/browser.ts"
import { adminToken, cleanUp, publicUrl } from "../e2e/process.ts"
import { startProcess } from "./services.ts"

const run = promisify(execFile)
const root = fileURLToPath(new URL("../..", import.meta.url))
const built = join(root, "client/dist")
const scenario = join(root, "test/client/bare/scenario.mjs")
const modules = new Set(
  readdirSync(built, { encoding: "utf8", recursive: true }).filter((name) => name.endsWith(".js"))
)

const page = `<!doctype html><link rel=icon href=data:,><title>A page</title>
<script type=importmap>{ "imports": { "@restante/client": "/index.js" } }</script>`

/** Another origin: a page, and the client's modules. */
const pages = createServer(({ url: path = "/" }, response) => {
  const name = path.slice(1)
  const script = path === "/scenario.js"
    ? readFileSync(scenario)
    : modules.has(name)
    ? readFileSync(join(built, name))
    : undefined
  response.setHeader("Content-Type", script === undefined ? "text/html" : "text/javascript")
  response.end(script ?? page)
})

let url = ""
let elsewhere = ""
let browser: Browser | undefined
beforeAll(async () => {
  await new Promise<void>((resolve) => pages.listen(0, "127.0.0.1", resolve))
  const { port } = pages.address() as AddressInfo // a TCP server's address is an object
  elsewhere = `http://127.0.0.1:${port}`
  url = (await startProcess(undefined, { CORS_ORIGIN: elsewhere })).url
})
afterAll(async () => {
  await browser?.close()
  pages.closeAllConnections()
  pages.close()
  cleanUp()
})

const expected = {
  content: "Grüße",
  etag: true,
  type: "image/x",
  sent: "sent",
  received: ["one", "three", "two"],
  read: true,
  session: "cast",
  problem: [true, 404, "Nothing is here"],
  aborted: "AbortError",
  push: true,
  receiver: 204
}

it("needs only the web's globals", async () => {
  const child = join(root, "test/client/bare/child.mjs")
  const args = ["--experimental-vm-modules", "--no-warnings", child, url, publicUrl, adminToken]
  const { stdout } = await run(process.execPath, args, { timeout: 25_000 })
  expect(JSON.parse(stdout)).toEqual(expected)
})

it("works in a page of an origin that the operator names", async () => {
  browser = await launchBrowser()
  // The scenario reads a missing mailbox, and gives a wrong answer.
  const tab = (await openTab(browser)).expects(404).expects(406)
  await tab.page.goto(`${elsewhere}/`)
  const options = JSON.stringify({ url, publicUrl, account: "admin", token: adminToken })
  const text = await tab.page.evaluate<string>(`new Promise((resolve, reject) => {
    globalThis.options = ${options}
    globalThis.report = resolve
    import("/scenario.js").catch(reject)
  })`)
  expect(JSON.parse(text)).toEqual(expected)
  await tab.close()
})
