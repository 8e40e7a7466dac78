/** A mail server on loopback, as far as one message needs it (RFC 5321, RFC 4954). */
import { createServer, type Server, type Socket } from "node:net"

/** A message that the server has taken. */
export interface Mail {
  /** The user and the password, if the client has sent them. */
  readonly credentials: string | undefined
  readonly from: string
  readonly to: ReadonlyArray<string>
  readonly text: string
}

interface Dialog {
  credentials?: string
  from: string
  to: Array<string>
  /** The lines of the message; undefined outside of it. */
  text: Array<string> | undefined
}

const addressIn = (line: string): string => /<([^>]*)>/.exec(line)?.[1] ?? ""

/** Answers one line of the client. */
const answer = (dialog: Dialog, line: string, take: (mail: Mail) => void): string | undefined => {
  if (dialog.text !== undefined) {
    if (line !== ".") {
      dialog.text.push(line.replace(/^\.\./, "."))
      return undefined
    }
    const { credentials, from, text, to } = dialog
    take({ credentials, from, to, text: text.join("\n") })
    dialog.text = undefined
    return "250 taken"
  }
  const [, verb = "", rest = ""] = /^(\w+) ?(.*)$/.exec(line) ?? []
  switch (verb.toUpperCase()) {
    case "EHLO":
      return "250-mail.test\r\n250 AUTH PLAIN"
    case "AUTH": {
      const [, plain = ""] = rest.split(" ")
      const [, user, password] = Buffer.from(plain, "base64").toString().split("\0")
      dialog.credentials = `${user}:${password}`
      return "235 welcome"
    }
    case "MAIL":
      dialog.from = addressIn(rest)
      return "250 ok"
    case "RCPT":
      dialog.to.push(addressIn(rest))
      return "250 ok"
    case "DATA":
      dialog.text = []
      return "354 go on"
    case "QUIT":
      return "221 bye"
    default:
      return "502 unknown"
  }
}

const serve = (socket: Socket, take: (mail: Mail) => void): void => {
  const dialog: Dialog = { from: "", to: [], text: undefined }
  let rest = ""
  socket.setEncoding("utf8").on("error", () => socket.destroy())
  socket.write("220 mail.test\r\n")
  socket.on("data", (chunk: string) => {
    const lines = `${rest}${chunk}`.split("\r\n")
    rest = lines.pop() ?? ""
    for (const line of lines) {
      const answered = answer(dialog, line, take)
      if (answered !== undefined) socket.write(`${answered}\r\n`)
      if (answered?.startsWith("221")) socket.end()
    }
  })
}

/** Starts a server, which gives each message to `take`. */
export const startMailServer = async (
  take: (mail: Mail) => void
): Promise<{ readonly port: number; readonly server: Server }> => {
  const server = createServer((socket) => serve(socket, take))
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  if (address === null || typeof address === "string") throw new Error("no port")
  return { port: address.port, server }
}
