/** Builds an image from this machine's NATS server, without an image registry. */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { GenericContainer } from "testcontainers"
import { run } from "../deploy/tools.ts"
import { within } from "../e2e/process.ts"
import { serverBinary } from "../runtime/nats/servers.ts"
import type { Docker } from "./daemon.ts"

const builtWithinMs = 60_000
/** The server's configuration file, data folder and port. */
export const inImage = { config: "/nats.conf", data: "/data", port: 4222, routePort: 6222 }

/** The loader and libraries that a program needs at the same paths; none when static. */
const librariesOf = (program: string): ReadonlyArray<string> => {
  const { code, output } = run("ldd", [program])
  if (code !== 0) return []
  return output.split("\n").flatMap((line) => /(?:^\s*|=> )(\/\S+) \(/.exec(line)?.[1] ?? [])
}

/** Builds the image and returns its name. */
export const buildImage = async ({ label }: Docker): Promise<string> => {
  const folder = mkdtempSync(join(tmpdir(), "restante-image-"))
  const binary = serverBinary()
  const files = [
    { from: binary, to: "/nats-server" },
    ...librariesOf(binary).map((library) => ({ from: library, to: library }))
  ]
  for (const { from, to } of files) {
    mkdirSync(join(folder, "root", dirname(to)), { recursive: true })
    copyFileSync(from, join(folder, "root", to))
  }
  const command = JSON.stringify(["/nats-server", "-c", inImage.config])
  const lines = ["FROM scratch", "COPY root /", `LABEL ${label.name}=${label.value}`]
  writeFileSync(join(folder, "Dockerfile"), [...lines, `ENTRYPOINT ${command}`, ""].join("\n"))
  const name = `restante-test-nats:${label.value}`
  try {
    // It never settles when the daemon refuses.
    const building = GenericContainer.fromDockerfile(folder).build(name)
    await within(builtWithinMs, "the image is built", building)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  return name
}
