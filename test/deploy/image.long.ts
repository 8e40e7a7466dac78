/**
 * The image with Docker, on a local base: built, started without privileges on a read-only root
 * file system, used, stopped. It uses the running Docker or starts one, and fails without Docker.
 */
import { rm } from "node:fs/promises"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { type Docker, runningDocker, startDocker, useDocker } from "../docker/daemon.ts"
import { expectStatus, listMailbox, notification, openMailbox, postXml } from "../e2e/client.ts"
import { adminToken, eventually, publicUrl, temporaryFolder } from "../e2e/process.ts"
import { freePorts } from "../runtime/nats/servers.ts"
import { baseEnvironment, baseFolder, npmRegistry } from "./base.ts"
import { at, lastOf, root } from "./sources.ts"
import { must, run, toolOf } from "./tools.ts"

const buildWithinMs = 900_000
const healthyWithinMs = 120_000
const bytesMax = 400_000_000
const unique = `restante-test-${process.pid}`
const baseTag = `${unique}-base`

let daemon: Docker | undefined
let host: Readonly<Record<string, string>> = {}
const folder = temporaryFolder()

const tryDocker = (...args: ReadonlyArray<string>) => run(toolOf("docker", "docker.io"), args, host)

const docker = (...args: ReadonlyArray<string>): string => {
  const { code, output } = tryDocker(...args)
  if (code !== 0) throw new Error(`docker ${args.join(" ")}: ${output}`)
  return output.trim()
}

const haveDocker = async (): Promise<void> => {
  const running = await runningDocker()
  daemon = await (running === undefined
    ? startDocker(toolOf("dockerd", "docker.io"))
    : useDocker(running))
  host = { DOCKER_HOST: daemon.host, DOCKER_BUILDKIT: "0", HOME: folder }
}

const importBase = async (): Promise<void> => {
  const changes = Object.entries(baseEnvironment).map(([name, value]) => `ENV ${name}=${value}`)
  const program = toolOf("docker", "docker.io")
  const script = "tar -C \"$1\" -c . | \"$2\" import -c \"$3\" - \"$4\""
  const args = ["-c", script, "sh", await baseFolder(), program, changes.join("\n"), baseTag]
  await must("sh", args, { ...process.env, ...host })
}

beforeAll(async () => {
  await haveDocker()
  await importBase()
  const args = [
    ...[
      "build",
      "--network",
      "host",
      "-f",
      join(root, "deploy/manifests/Dockerfile"),
      "-t",
      unique
    ],
    ...["--build-arg", `BASE_IMAGE=${baseTag}`],
    ...["--build-arg", `NPM_CONFIG_REGISTRY=${npmRegistry()}`, root]
  ]
  await must(toolOf("docker", "docker.io"), args, { ...process.env, ...host })
}, buildWithinMs)

afterAll(async () => {
  tryDocker("rm", "-f", unique)
  tryDocker("volume", "rm", "-f", unique)
  tryDocker("rmi", "-f", unique, baseTag)
  await daemon?.end()
  await rm(folder, { recursive: true, force: true })
})

const inspected = (): unknown => {
  const [one]: ReadonlyArray<unknown> = JSON.parse(docker("inspect", unique))
  return one
}

const healthy = () =>
  eventually(healthyWithinMs, "the container is healthy", () => {
    const state = at(inspected(), "State")
    if (at(state, "Running") !== true) throw new Error(docker("logs", unique))
    return at(state, "Health", "Status") === "healthy" ? true : undefined
  }, 500)

it("starts without privileges, becomes healthy, and stores what it accepted", async () => {
  const [port = 0] = await freePorts(1)
  const base = `http://127.0.0.1:${port}`
  const settings = { HOST: "127.0.0.1", PORT: port, BASE_URL: publicUrl, ADMIN_TOKEN: adminToken }
  docker(
    ...["run", "-d", "--name", unique, "--network", "host", "--read-only", "--cap-drop", "ALL"],
    ...["--security-opt", "no-new-privileges", "-v", `${unique}:${lastOf("VOLUME")}`],
    ...Object.entries(settings).flatMap(([name, value]) => ["-e", `${name}=${value}`]),
    unique
  )
  await healthy()
  expect(docker("exec", unique, "id", "-u")).toBe(lastOf("USER").split(":")[0])
  const mailbox = await openMailbox(base, "boxed")
  expectStatus(await postXml(base, mailbox.path, notification("one")), 202)
  docker("stop", "-t", "60", unique)
  expect(at(inspected(), "State")).toMatchObject({ Running: false, ExitCode: 0, OOMKilled: false })
  docker("start", unique)
  await healthy()
  const listed = await listMailbox(base, mailbox)
  expect(listed.map(({ description }) => description)).toEqual(["one"])
  docker("stop", "-t", "60", unique)
  expect(at(inspected(), "State", "ExitCode")).toBe(0)
})

it("is smaller than 400 MB", () => {
  const bytes = Number(docker("image", "inspect", "-f", "{{.Size}}", unique))
  expect(bytes).toBeGreaterThan(0)
  expect(bytes).toBeLessThan(bytesMax)
})
