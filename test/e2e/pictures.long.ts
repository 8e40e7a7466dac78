/**
 * The pictures of pages and of a terminal in the documentation. They are made into
 * `test-results/pictures`; with `PICTURES=1` also into `docs/pictures`, when the pages or the
 * commands have changed.
 */
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, expect, it } from "vitest"
import { mkdirSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { adminHeaders, launchBrowser } from "./browser/browser.ts"
import type { SamplePage } from "./browser/sample-page.ts"
import { createSamplePages } from "./browser/sample-pages.ts"
import { firstStartIn, writtenOrigin } from "../docs/transcript.ts"
import { adminToken, cleanUp, command, type Service, start } from "./process.ts"
import { closeReceivers } from "./receivers.ts"

/** Bytes of one picture. */
const bytesMax = 60_000

const quality = 0.72

const desk = { width: 1_120, height: 760, scale: 1 }
const phone = { width: 390, height: 640, scale: 2 }

/** The file of each picture, the page of the samples that it shows, and on which screen. */
const pictures = [
  { file: "mailbox", page: "mailbox", ...desk },
  { file: "sent", page: "sent", ...desk },
  { file: "mailbox-phone", page: "mailbox", ...phone },
  { file: "cluster", page: "cluster", width: 820, height: 560, scale: 1 },
  { file: "admin", page: "administration", ...desk }
]

const folders = [
  "../../test-results/pictures/",
  ...process.env["PICTURES"] === "1" ? ["../../docs/pictures/"] : []
].map((path) => fileURLToPath(new URL(path, import.meta.url)))

let service: Service
let browser: Browser
let base: string
let pages: ReadonlyArray<SamplePage>

beforeAll(async () => {
  const launching = launchBrowser()
  service = await start({ env: { BASE_URL: "", OUTBOUND_ALLOW: "127.0.0.0/8" } })
  base = `http://localhost:${service.port}`
  pages = await createSamplePages(base)
  browser = await launching
})

afterAll(async () => {
  await browser?.close()
  closeReceivers()
  cleanUp()
})

/** A PNG as WebP, which the browser encodes. */
const webpOf = async (png: Buffer): Promise<Buffer> => {
  const page = await browser.newPage()
  const base64 = await page.evaluate(`(async () => {
    const image = new Image()
    image.src = "data:image/png;base64,${png.toString("base64")}"
    await image.decode()
    const canvas = new OffscreenCanvas(image.width, image.height)
    canvas.getContext("2d", { alpha: false }).drawImage(image, 0, 0)
    const blob = await canvas.convertToBlob({ type: "image/webp", quality: ${quality} })
    return btoa(Array.from(new Uint8Array(await blob.arrayBuffer()), (one) =>
      String.fromCharCode(one)).join(""))
  })()`)
  await page.close()
  return Buffer.from(String(base64), "base64")
}

/** Saves a picture, which is small enough for a page of the documentation. */
const save = async (file: string, png: Buffer): Promise<void> => {
  const bytes = await webpOf(png)
  expect(bytes.toString("latin1", 8, 12)).toBe("WEBP")
  for (const folder of folders) {
    mkdirSync(folder, { recursive: true })
    writeFileSync(`${folder}${file}.webp`, bytes)
  }
  expect(bytes.length).toBeLessThan(bytesMax)
}

it.each(pictures)("$file is a small picture of a page", async (picture) => {
  const { file, height, page: name, scale, width } = picture
  const path = pages.find((one) => one.name === name)?.path
  if (path === undefined) throw new Error(`no sample page ${name}`)
  const context = await browser.newContext({
    viewport: { width, height },
    deviceScaleFactor: scale,
    colorScheme: "light",
    extraHTTPHeaders: adminHeaders
  })
  const page = await context.newPage()
  await page.goto(base + path)
  await page.evaluate("document.fonts.ready.then(() => undefined)")
  const png = await page.screenshot()
  await context.close()
  await save(file, png)
})

/** What the first start prints, as a reader of the quick start sees it, without its secrets. */
const firstStart = async (): Promise<string> => {
  const first = await start({ env: { BASE_URL: "", ADMIN_TOKEN: "" } })
  const { secret, token } = firstStartIn(first.output) ?? {}
  if (token === undefined || secret === undefined) throw new Error(first.output)
  const shown = first.output.trimEnd()
    .replaceAll(token, "rst_…")
    .replaceAll(`~${secret}`, "~…")
    .replaceAll(`http://localhost:${first.port}`, writtenOrigin)
    .replaceAll(`127.0.0.1:${first.port}`, "0.0.0.0:8080")
    .replaceAll(first.dataDir, "./data")
  await first.kill()
  return shown
}

/** The second sample of `restante top`, which has rates. */
const top = async (): Promise<string> => {
  const { code, output } = await command(["top", "--count", "2", "--interval", "1"], {
    BASE_URL: base,
    RESTANTE_TOKEN: adminToken
  })
  if (code !== 0) throw new Error(output)
  const [, second] = output.trimEnd().split(/^(?=\d{4}-\d\d-\d\dT)/m)
  if (second === undefined) throw new Error(`one sample: ${output}`)
  return second.trimEnd()
}

/** A terminal with a command and its output. */
const terminalOf = (typed: string, output: string): string => {
  const text = `$ ${typed}\n${output}`
  return `<!doctype html><meta charset="utf-8"><style>
body { margin: 0; width: max-content }
pre { margin: 0; padding: 16px 20px; background: #17181c; color: #e6e7eb;
  font: 14px/1.5 "DejaVu Sans Mono", monospace }
</style><pre>${text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")}</pre>`
}

it.each([
  ["first-start", "npm start", firstStart],
  ["top", "restante top", top]
])("%s is a small picture of a terminal without secrets", async (file, typed, outputOf) => {
  const output = await outputOf()
  // The commands color nothing: a sequence here would have to be shown.
  expect(output).not.toContain("\u001b")
  expect(output).not.toMatch(/rst_\w|~\w/)
  const context = await browser.newContext({ deviceScaleFactor: 2 })
  const page = await context.newPage()
  await page.setContent(terminalOf(typed, output))
  const png = await page.locator("body").screenshot()
  await context.close()
  await save(file, png)
})
