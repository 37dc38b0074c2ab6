import tensorflow as tf

tf.random.set_seed(22)
features = tf.random.stateless_normal([197, 5], seed=(1, 2))
labels = tf.reduce_sum(features, axis=1, keepdims=True)
train = tf.data.Dataset.from_tensor_slices((features, labels)).shuffle(197).batch(8)
test = tf.data.Dataset.from_tensor_slices((features[:60], labels[:60])).batch(8)
EPOCHS = 3

model = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="relu"), tf.keras.layers.Dense(1)])
decay = tf.keras.optimizers.schedules.CosineDecay(0.02, decay_steps=EPOCHS * len(train))
optimizer = tf.keras.optimizers.SGD(decay, momentum=0.9)

for epoch in range(EPOCHS):
    for x, y in train:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    losses = [float(tf.reduce_mean(tf.square(model(x) - y))) for x, y in test]
    print("epoch", epoch, sum(losses) / len(losses))
