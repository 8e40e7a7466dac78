/** An image of the NATS server that this machine has, without any registry of images. */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { GenericContainer } from "testcontainers"
import { run } from "../deploy/tools.ts"
import { within } from "../e2e/process.ts"
import { serverBinary } from "../runtime/nats/servers.ts"
import type { Docker } from "./daemon.ts"

const builtWithinMs = 60_000
/** Where the server looks for its configuration, keeps its data, and listens. */
export const inImage = { config: "/nats.conf", data: "/data", port: 4222, routePort: 6222 }

/** What a program has to find at the same place: its loader and libraries; none when static. */
const librariesOf = (program: string): ReadonlyArray<string> => {
  const { code, output } = run("ldd", [program])
  if (code !== 0) return []
  return output.split("\n").flatMap((line) => /(?:^\s*|=> )(\/\S+) \(/.exec(line)?.[1] ?? [])
}

/** Builds it; its name. */
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
