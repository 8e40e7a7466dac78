/** A Restate server with the objects of `runtime/restate-service.ts`, installed from npm. */
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { install } from "../foreign/install.ts"
import { freePort, type Running, startProgram } from "./process.ts"

const source = {
  registry: "npm",
  name: "@restatedev/restate-server",
  version: "1.7.12",
  beside: ["@restatedev/restate-sdk@1.17.2"]
} as const

export const restateVersion = source.version

export interface Restate {
  /** Where clients ask. */
  readonly origin: string
  /** Processor time of the server and of the service with the objects. */
  readonly cpuMs: () => number
  readonly stop: () => Promise<void>
}

const originOf = (port: number): string => `http://127.0.0.1:${port}`

const startServer = async (
  installed: string,
  folder: string
): Promise<readonly [Running, string]> => {
  const [admin, fabric, ingress] = [await freePort(), await freePort(), await freePort()]
  const platform = `${process.platform}-${process.arch}`
  const program = join(installed, `@restatedev/restate-server-${platform}/bin/restate-server`)
  const env = {
    RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
    RESTATE_BIND_ADDRESS: `127.0.0.1:${fabric}`,
    RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
    DO_NOT_TRACK: "1"
  }
  const args = ["--base-dir", folder, "--node-name", "bench", "--log-filter", "error"]
  const ready = `${originOf(admin)}/health`
  return [
    await startProgram(program, args, { env, origin: originOf(ingress), ready }),
    originOf(admin)
  ]
}

const register = async (admin: string, service: string): Promise<void> => {
  const answer = await fetch(`${admin}/deployments`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ uri: service })
  })
  if (!answer.ok) {
    throw new Error(`Restate does not take the service: ${answer.status} ${await answer.text()}`)
  }
  await answer.body?.cancel()
}

const startService = async (modules: string, admin: string): Promise<Running> => {
  const port = await freePort()
  const script = fileURLToPath(new URL("runtime/restate-service.js", import.meta.url))
  const service = await startProgram(process.execPath, [script, modules, String(port)], {
    // By default it logs each invocation.
    env: { RESTATE_LOGGING: "ERROR", NODE_ENV: "production" },
    origin: originOf(port),
    // It answers HTTP/2 only; the admin of the server calls it when it is registered.
    ready: `${admin}/health`
  })
  try {
    await register(admin, service.origin)
    return service
  } catch (error) {
    await service.stop()
    throw error
  }
}

/** Starts both on loopback, with a log in `folder`. */
export const startRestate = async (folder: string): Promise<Restate> => {
  const { pathOf } = await install(source)
  const installed = dirname(dirname(pathOf("restate-server")))
  const [server, admin] = await startServer(installed, folder)
  try {
    const service = await startService(dirname(installed), admin)
    return {
      origin: server.origin,
      cpuMs: () => server.cpuMs() + service.cpuMs(),
      stop: async () => {
        await service.stop()
        await server.stop()
      }
    }
  } catch (error) {
    await server.stop()
    throw error
  }
}
