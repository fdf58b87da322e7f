package perdix;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.Vector;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.util.SafeEncoder;
import site.ycsb.ByteArrayByteIterator;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.Status;

/**
 * YCSB's database interface over a server with the module perdix, through Jedis.
 *
 * <p>Properties: {@code perdix.host}, {@code perdix.port}, and {@code perdix.mode}: {@code tables}
 * makes YCSB's table one key with a record in each field (PX.PUT, PX.GET, PX.RANGE), {@code
 * keyspace} makes each record a native string (SET, GET), without scans. A record is one value: the
 * names and values of its fields.
 */
public final class ServerDb extends DB {
  private enum Command implements ProtocolCommand {
    PUT("PX.PUT"),
    GET("PX.GET"),
    DEL("PX.DEL"),
    RANGE("PX.RANGE");

    private final byte[] name;

    Command(String name) {
      this.name = SafeEncoder.encode(name);
    }

    @Override
    public byte[] getRaw() {
      return name;
    }
  }

  private Jedis server;
  private boolean tables;

  @Override
  public void init() {
    int port = Integer.parseInt(getProperties().getProperty("perdix.port", "6379"));
    server = new Jedis(getProperties().getProperty("perdix.host", "127.0.0.1"), port);
    tables = getProperties().getProperty("perdix.mode", "tables").equals("tables");
  }

  @Override
  public void cleanup() {
    server.close();
  }

  @Override
  public Status read(
      String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    return status(
        () -> {
          byte[] record = get(table, key);
          if (record == null) {
            return Status.NOT_FOUND;
          }
          decode(record, fields, result);
          return Status.OK;
        });
  }

  @Override
  public Status scan(
      String table,
      String first,
      int count,
      Set<String> fields,
      Vector<HashMap<String, ByteIterator>> result) {
    if (!tables) {
      return Status.NOT_IMPLEMENTED;
    }
    return status(
        () -> {
          Object reply =
              server.sendCommand(
                  Command.RANGE,
                  bytes(table),
                  bytes("[" + first),
                  bytes("+"),
                  bytes("LIMIT"),
                  bytes(Integer.toString(count)));
          List<?> pairs = (List<?>) reply;
          for (int i = 1; i < pairs.size(); i += 2) {
            HashMap<String, ByteIterator> record = new HashMap<>();
            decode((byte[]) pairs.get(i), fields, record);
            result.add(record);
          }
          return Status.OK;
        });
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    return status(
        () -> {
          byte[] before = get(table, key);
          if (before == null) {
            return Status.NOT_FOUND;
          }
          Map<String, ByteIterator> record = new HashMap<>();
          decode(before, null, record);
          record.putAll(values);
          put(table, key, encode(record));
          return Status.OK;
        });
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    return status(
        () -> {
          put(table, key, encode(values));
          return Status.OK;
        });
  }

  @Override
  public Status delete(String table, String key) {
    return status(
        () -> {
          if (tables) {
            server.sendCommand(Command.DEL, bytes(table), bytes(key));
          } else {
            server.del(bytes(key));
          }
          return Status.OK;
        });
  }

  private interface Call {
    Status run() throws IOException;
  }

  private static Status status(Call call) {
    try {
      return call.run();
    } catch (JedisException | IOException error) {
      System.err.println(error);
      return Status.ERROR;
    }
  }

  private byte[] get(String table, String key) {
    return tables
        ? (byte[]) server.sendCommand(Command.GET, bytes(table), bytes(key))
        : server.get(bytes(key));
  }

  private void put(String table, String key, byte[] record) {
    if (tables) {
      server.sendCommand(Command.PUT, bytes(table), bytes(key), record);
    } else {
      server.set(bytes(key), record);
    }
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private static byte[] encode(Map<String, ByteIterator> record) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(bytes);
    for (Map.Entry<String, ByteIterator> field : record.entrySet()) {
      byte[] value = field.getValue().toArray();
      out.writeUTF(field.getKey());
      out.writeInt(value.length);
      out.write(value);
    }
    return bytes.toByteArray();
  }

  private static void decode(byte[] record, Set<String> fields, Map<String, ByteIterator> result)
      throws IOException {
    DataInputStream in = new DataInputStream(new ByteArrayInputStream(record));
    while (in.available() > 0) {
      String name = in.readUTF();
      byte[] value = new byte[in.readInt()];
      in.readFully(value);
      if (fields == null || fields.contains(name)) {
        result.put(name, new ByteArrayByteIterator(value));
      }
    }
  }
}
