/** What the servers of a cluster run in: containers where there is Docker, else processes. */
import { found } from "../deploy/tools.ts"
import { type Docker, runningDocker, startDocker, useDocker } from "../docker/daemon.ts"
import { buildImage } from "../docker/image.ts"
import { inContainers, tryContainer } from "./containers.ts"
import { asProcesses, type Site } from "./site.ts"

const reasonMax = 500

export interface Ground {
  /** For the titles of tests. */
  readonly title: string
  readonly startSite: () => Promise<Site>
  readonly close: () => Promise<void>
}

/** The Docker that there is, or why there is none. */
const findDocker = async (): Promise<Docker | string> => {
  if (process.platform !== "linux") return "the NATS server of this machine is none for Linux"
  const host = await runningDocker()
  if (host !== undefined) return useDocker(host)
  const dockerd = found("dockerd")
  if (dockerd === undefined) return "no daemon answers, and no dockerd is installed"
  if (process.getuid?.() !== 0) return "no daemon answers, and only root can start one"
  return startDocker(dockerd)
}

/** Servers in containers; or why there can be none. */
const tryDocker = async (): Promise<Ground | string> => {
  const docker = await findDocker()
  if (typeof docker === "string") return docker
  try {
    Object.assign(process.env, {
      DOCKER_HOST: docker.host,
      // Neither its image nor another one can be pulled everywhere; what there is to be removed is.
      TESTCONTAINERS_RYUK_DISABLED: "true",
      // Ports are published here, whatever testcontainers finds out.
      TESTCONTAINERS_HOST_OVERRIDE: "127.0.0.1"
    })
    const image = await buildImage(docker)
    await tryContainer(docker, image)
    const startSite = () => inContainers(docker, image)
    return { title: "in containers", startSite, close: docker.end }
  } catch (error) {
    await docker.end()
    return String(error)
  }
}

/**
 * Docker is to be had on Linux where
 * - a daemon answers at DOCKER_HOST (a socket, or TCP without TLS) or at the default socket, or
 *   `dockerd` is installed and, as root, one that is started here answers;
 * - and there a NATS server runs in a container, of an image made of this machine's own server, and
 *   takes clients at a port published on this machine's loopback address.
 *
 * Where any of it fails (a container without rights, a daemon of another machine) servers run as
 * processes, and the title and the output tell why. TEST_DOCKER=never does without Docker, and
 * TEST_DOCKER=must fails where it is not to be had.
 */
export const findGround = async (): Promise<Ground> => {
  const wish = process.env["TEST_DOCKER"]
  const tried = wish === "never"
    ? "TEST_DOCKER=never"
    : await tryDocker().catch((error: unknown) => String(error))
  if (typeof tried !== "string") return tried
  if (wish === "must") throw new Error(`there is no Docker to be had: ${tried}`)
  // What a daemon says last is why it ended.
  const reason = (tried.trim().split("\n").at(-1) ?? "").slice(-reasonMax)
  console.info(`servers run as processes, since there is no Docker to be had: ${reason}`)
  return { title: "as processes", startSite: asProcesses, close: async () => undefined }
}
