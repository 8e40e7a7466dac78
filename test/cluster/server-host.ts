/** Chooses where the servers of a cluster run: in containers with Docker, else as processes. */
import { found } from "../deploy/tools.ts"
import { type Docker, runningDocker, startDocker, useDocker } from "../docker/daemon.ts"
import { buildImage } from "../docker/image.ts"
import { startContainers, tryContainer } from "./containers.ts"
import { type Site, startProcesses } from "./site.ts"

const reasonMax = 500

export interface ServerHost {
  /** For the titles of tests. */
  readonly title: string
  readonly startSite: () => Promise<Site>
  readonly close: () => Promise<void>
}

/** The available Docker, or the reason why there is none. */
const findDocker = async (): Promise<Docker | string> => {
  if (process.platform !== "linux") return "the NATS server of this machine is none for Linux"
  const host = await runningDocker()
  if (host !== undefined) return useDocker(host)
  const dockerd = found("dockerd")
  if (dockerd === undefined) return "no daemon answers, and no dockerd is installed"
  if (process.getuid?.() !== 0) return "no daemon answers, and only root can start one"
  return startDocker(dockerd)
}

/** Servers in containers, or the reason why they cannot run. */
const tryDocker = async (): Promise<ServerHost | string> => {
  const docker = await findDocker()
  if (typeof docker === "string") return docker
  try {
    Object.assign(process.env, {
      DOCKER_HOST: docker.host,
      // Not every machine can pull testcontainers' image for cleaning up; this test removes all.
      TESTCONTAINERS_RYUK_DISABLED: "true",
      // The ports are published on this address, whatever testcontainers detects.
      TESTCONTAINERS_HOST_OVERRIDE: "127.0.0.1"
    })
    const image = await buildImage(docker)
    await tryContainer(docker, image)
    const startSite = () => startContainers(docker, image)
    return { title: "in containers", startSite, close: docker.end }
  } catch (error) {
    await docker.end()
    return String(error)
  }
}

/**
 * Docker is available on Linux where
 * - a daemon responds at DOCKER_HOST (a socket, or TCP without TLS) or at the default socket, or
 *   `dockerd` is installed and this process, as root, can start one;
 * - a NATS server runs in a container, from an image of this machine's own server binary, and
 *   accepts clients at a port on this machine's loopback address.
 *
 * Where any of this fails (a container without rights, a daemon on another machine), the servers
 * run as processes, and the title and the output give the reason. TEST_DOCKER=never disables
 * Docker, and TEST_DOCKER=must fails without it.
 */
export const chooseServerHost = async (): Promise<ServerHost> => {
  const wish = process.env["TEST_DOCKER"]
  const tried = wish === "never"
    ? "TEST_DOCKER=never"
    : await tryDocker().catch((error: unknown) => String(error))
  if (typeof tried !== "string") return tried
  if (wish === "must") throw new Error(`there is no Docker to be had: ${tried}`)
  // The last output of a daemon has the reason for its end.
  const reason = (tried.trim().split("\n").at(-1) ?? "").slice(-reasonMax)
  console.info(`servers run as processes, since there is no Docker to be had: ${reason}`)
  return { title: "as processes", startSite: startProcesses, close: async () => undefined }
}
