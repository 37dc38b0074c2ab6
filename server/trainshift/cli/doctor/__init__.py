"""`trainshift doctor`: is there a TensorFlow and a Horovod that converted scripts run on?"""
