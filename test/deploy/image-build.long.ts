/**
 * The image without Docker: the Dockerfile's instructions run on a local base, and the result runs
 * on Node.js 24 with the image's user, entry point and health check. The root file system is
 * read-only except for the volume. `image.long.ts` does the same with Docker.
 */
import { chownSync, existsSync, mkdirSync, readdirSync } from "node:fs"
import { rm } from "node:fs/promises"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { expectStatus, listMailbox, notification, openMailbox, postXml } from "../e2e/client.ts"
import { adminToken, cleanUp, eventually, publicUrl, Running } from "../e2e/process.ts"
import { freePorts } from "../runtime/nats/servers.ts"
import { baseFolder, npmRegistry, workFolder } from "./base.ts"
import { lastOf } from "./sources.ts"
import { buildStages, type Stage } from "./stages.ts"
import { ownMounts, run } from "./tools.ts"

const buildWithinMs = 600_000
const healthyWithinMs = 120_000
const bytesMax = 400_000_000

let work: string
let base: string
let image: Stage
let volume: string
const user = lastOf("USER")

beforeAll(async () => {
  work = workFolder()
  base = await baseFolder()
  image = await buildStages(base, work, { NPM_CONFIG_REGISTRY: npmRegistry() })
  volume = join(work, "volume")
  mkdirSync(volume)
  const [uid, gid] = user.split(":").map(Number)
  chownSync(volume, uid ?? 0, gid ?? 0)
}, buildWithinMs)

afterAll(async () => {
  cleanUp()
  await rm(work, { recursive: true, force: true })
}, buildWithinMs)

const listOf = (text: string): ReadonlyArray<string> => {
  const words: unknown = JSON.parse(text)
  if (!Array.isArray(words)) throw new Error(`${text} is not in exec form`)
  return words.map(String)
}

/** Changes the root within its own mounts; the last program replaces the process. */
const contained = `set -e
cd "$1"
mount --bind . .
cd "$1"
mount --bind "$2" ".$3"
mount -o remount,bind,ro .
shift 3
exec chroot "$@"`

const inImage = (command: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...[...ownMounts(), "sh", "-c", contained, "contained"],
  ...[image.folder, volume, lastOf("VOLUME"), `--userspec=${user}`, "."],
  ...["/bin/sh", "-c", `cd ${image.workdir} && exec "$@"`, "sh", ...command]
]

const started = async () => {
  const [port = 0] = await freePorts(1)
  const environment = {
    ...image.environment,
    PORT: String(port),
    ADMIN_TOKEN: adminToken,
    BASE_URL: publicUrl
  }
  const command = [...listOf(lastOf("ENTRYPOINT")), ...listOf(lastOf("CMD"))]
  const service = new Running("unshare", inImage(command), environment)
  const [, check = ""] = lastOf("HEALTHCHECK").split(" CMD ")
  await eventually(healthyWithinMs, "the image is healthy", () => {
    if (service.isOver) throw new Error(service.output)
    const { code } = run("unshare", inImage(listOf(check)), environment)
    return code === 0 ? true : undefined
  }, 200)
  return { service, base: `http://127.0.0.1:${port}` }
}

it("runs as nobody on a read-only system, and stores what it accepted", async () => {
  const first = await started()
  const mailbox = await openMailbox(first.base, "boxed")
  expectStatus(await postXml(first.base, mailbox.path, notification("one")), 202)
  const whole = run("unshare", inImage(["sh", "-c", "id -u; touch /app/x /data/x; ls /data"]))
  expect(whole.output).toContain(user.split(":")[0])
  expect(whole.output).toMatch(/\/app\/x.*Read-only file system/)
  expect(whole.output).toMatch(/^x$/m)
  expect(await first.service.stop()).toEqual({ code: 0, signal: null })
  const second = await started()
  const listed = await listMailbox(second.base, mailbox)
  expect(listed.map(({ description }) => description)).toEqual(["one"])
  expect(await second.service.stop()).toEqual({ code: 0, signal: null })
})

it("reports that it is unhealthy where nothing listens", () => {
  const [, check = ""] = lastOf("HEALTHCHECK").split(" CMD ")
  const { code } = run("unshare", inImage(listOf(check)), { ...image.environment, PORT: "1" })
  expect(code).toBe(1)
})

it("has its commands on the path, on Node.js 24", () => {
  const { output } = run("unshare", inImage(["restante", "--version"]), image.environment)
  expect(output).toMatch(/^restante v\d/)
  expect(run("unshare", inImage(["node", "--version"]), image.environment).output)
    .toMatch(/^v24\./)
})

it("contains only what it runs, in less than 400 MB", () => {
  const modules = join(image.folder, "app/node_modules")
  expect(existsSync(join(modules, "effect"))).toBe(true)
  for (const spare of ["typescript", "vitest", "@dprint/typescript"]) {
    expect(existsSync(join(modules, spare)), spare).toBe(false)
  }
  // Of the native server only the binary for this platform and the image's Node.js.
  const natives = readdirSync(join(modules, "@uwsjs")).filter((name) => name !== "core")
  expect(natives).toEqual(["linux-x64-24"])
  expect(readdirSync(join(image.folder, "root"))).toEqual(readdirSync(join(base, "root")))
  const { output } = run("du", ["-sb", image.folder])
  expect(Number(output.split("\t")[0])).toBeLessThan(bytesMax)
})
