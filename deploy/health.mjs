/** The image's health check: exit code 0 when the node in this container is ready. */
import { get } from "node:http"

const timeoutMs = 3_000

const end = (ready) => process.exit(ready ? 0 : 1)
const port = process.env.PORT ?? "8080"

get(
  { host: "127.0.0.1", port, path: "/readyz", timeout: timeoutMs },
  ({ statusCode }) => end(statusCode === 200)
)
  .on("timeout", () => end(false))
  .on("error", () => end(false))
